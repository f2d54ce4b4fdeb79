// chorus doctor with an imitated coordinator: what it says of a worker that it cannot ask.
#include <doctest/doctest.h>

#include "http/api/cluster/links.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/probes.hpp"
#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::mentions;

TEST_CASE("doctor says why it does not reach a worker that the coordinator reaches") {
  FakeCoordinator coordinator;
  api::Worker worker;
  worker.id = "w0";
  worker.state = "ready";
  worker.version = "1";
  worker.url = "http://no-such-host.invalid:7071";
  coordinator.answer("GET /readyz", 200, "ready\n");
  coordinator.answer("GET /v1", 200, R"({"name":"chorus-coordinator","version":"1"})");
  coordinator.answer("GET /v1/status", 200, http::encode(api::CoordinatorStatus()));
  coordinator.answer("GET /v1/workers?limit=1000", 200, http::encode(api::WorkerList{{worker}, {}}));
  coordinator.answer("GET /v1/groups?limit=20", 200, http::encode(api::GroupList()));
  coordinator.answer("GET /v1/collectives?limit=50", 200, http::encode(api::CollectiveList()));
  coordinator.answer("GET /v1/links", 200, http::encode(api::MeasuredLinkList()));
  api::Reachability reached;
  reached.reachable = true;
  coordinator.answer("POST /v1/workers/w0/probe", 200, http::encode(reached));
  auto const run = at(coordinator, {"doctor"});
  CAPTURE(run.out);
  CHECK(run.status == 0);
  CHECK(mentions(run.out,
                 "note: worker w0: it is not reached at http://no-such-host.invalid:7071 from here, though the "
                 "coordinator does: cannot reach worker w0 at http://no-such-host.invalid:7071: the name "
                 "no-such-host.invalid does not resolve: "));
}
