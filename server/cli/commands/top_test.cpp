// chorus top with an imitated coordinator: what it asks for and counts.
#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus;
using namespace chorus::cli;
namespace json = boost::json;

namespace {

api::Worker listed_worker(std::string id, std::string state) {
  api::Worker worker;
  worker.id = std::move(id);
  worker.state = std::move(state);
  return worker;
}

api::Collective listed_collective(std::string id, std::string state) {
  api::Collective collective;
  collective.id = std::move(id);
  collective.state = std::move(state);
  return collective;
}

}  // namespace

TEST_CASE("top counts what is beyond the first page of a list") {
  FakeCoordinator coordinator;
  api::CoordinatorStatus status;
  status.groups = 30;
  status.degraded = 2;
  status.running = 1;
  coordinator.answer("GET /v1/status", 200, http::encode(status));
  coordinator.answer("GET /v1/workers?limit=1000", 200,
                     http::encode(api::WorkerList{{listed_worker("w0", "ready")}, "w0"}));
  coordinator.answer("GET /v1/workers?limit=1000&cursor=w0", 200,
                     http::encode(api::WorkerList{{listed_worker("w1", "lost")}, {}}));
  auto hanging = listed_collective("c1", "running");
  hanging.stalled.emplace().text = "nothing has moved for 2.0 s";
  coordinator.answer("GET /v1/collectives?limit=20", 200,
                     http::encode(api::CollectiveList{{listed_collective("c3", "succeeded")}, "c3"}));
  coordinator.answer("GET /v1/collectives?limit=20&cursor=c3", 200, http::encode(api::CollectiveList{{hanging}, "c1"}));
  auto const run = at(coordinator, {"top", "--count", "1"});
  CAPTURE(run.out);
  REQUIRE(run.status == 0);
  auto const shown = json::parse(run.out);
  CHECK(shown.at("workers") == 2);
  CHECK(shown.at("lost") == json::array{"w1"});
  CHECK(shown.at("groups") == 30);
  CHECK(shown.at("degraded") == 2);
  CHECK(shown.at("running").at(0).at("id") == "c1");
  CHECK(shown.at("stalled") == 1);
}
