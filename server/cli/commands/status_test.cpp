// `chorus status`: the verdict, which coordinator leads, where its state is kept, and what every coordinator answers.
#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus;
using namespace chorus::cli;
namespace json = boost::json;

namespace {

api::Collective all_reduce(std::string state) {
  api::Collective collective;
  collective.id = "c7";
  collective.state = std::move(state);
  collective.request.group = "train";
  collective.request.tensor = "grad";
  return collective;
}

api::CoordinatorStatus status(std::string level, std::vector<api::VerdictReason> reasons) {
  api::CoordinatorStatus status;
  status.verdict = {std::move(level), "the verdict", std::move(reasons)};
  return status;
}

}  // namespace

TEST_CASE("status is one sentence when all is well") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/status", 200, http::encode(status("green", {})));
  auto const run = at(coordinator, {"status"});
  CHECK(run.status == 0);
  CHECK(run.out == "the verdict\n");
}

TEST_CASE("status says what is not well, and what runs") {
  FakeCoordinator coordinator;
  auto known = status("red", {{"red", "group train is degraded", {}, "train", {}, {}}});
  known.workers = 2;
  known.ready = 1;
  known.running = 1;
  coordinator.answer("GET /v1/status", 200, http::encode(known));
  coordinator.answer("GET /v1/collectives?limit=20", 200,
                     http::encode(api::CollectiveList{{all_reduce("running"), all_reduce("succeeded")}, {}}));
  CHECK(lines_of(at(coordinator, {"status"}).out) ==
        std::vector<std::string>{"the verdict", "red: group train is degraded",
                                 "collective c7 is running: all_reduce of grad in train"});
  auto const json_status = json::parse(at(coordinator, {"status", "--json"}).out);
  CHECK(json_status.at("workers") == 2);
  CHECK(json_status.at("ready") == 1);
  CHECK(json_status.at("level") == "red");
  CHECK(json_status.at("verdict") == "the verdict");
  CHECK(json_status.at("reasons").at(0).at("text") == "group train is degraded");
}

TEST_CASE("status says where the state is kept, and how well") {
  FakeCoordinator coordinator;
  auto known = status("green", {});
  auto& lead = known.coordinator.emplace();
  lead.since = "2026-11-21T21:30:00Z";
  lead.store.kind = "none";
  auto const lines = [&] {
    coordinator.answer("GET /v1/status", 200, http::encode(known));
    return lines_of(at(coordinator, {"status"}).out);
  };
  CHECK(lines() == std::vector<std::string>{"the verdict", "store: none, a restart forgets everything"});
  lead.store = {"sqlite", "/var/lib/journal", {}, 3 << 20, 0.002, {}};
  CHECK(lines() == std::vector<std::string>{"the verdict", "store: journal /var/lib/journal, 3 MiB, last write 2 ms"});
  lead.store = {"etcd", "http://e1:2379,http://e2:2379", "training", 0, {}, "no quorum"};
  lead.url = "http://c1:7070";
  CHECK(lines() ==
        std::vector<std::string>{"the verdict", "leader: http://c1:7070 since 2026-11-21T21:30:00Z",
                                 "store: etcd cluster training at http://e1:2379,http://e2:2379, cannot be written"});
  auto const told = json::parse(at(coordinator, {"status", "--json"}).out).at("lead");
  CHECK(told.at("url") == "http://c1:7070");
  CHECK(told.at("store").at("kind") == "etcd");
  CHECK(told.at("store").at("failure") == "no quorum");
}

TEST_CASE("status says what every coordinator of the list answers") {
  FakeCoordinator leader, standby, candidate;
  leader.answer("GET /v1/status", 200, http::encode(status("green", {})));
  leader.answer("GET /v1", 200, "{}");
  standby.redirect("GET /v1/status", leader.url + "/v1/status");
  standby.redirect("GET /v1", leader.url + "/v1");
  candidate.answer("GET /v1", 503, R"({"code":"unavailable","status":503,"detail":"no coordinator leads at present"})");
  auto const nobody = std::string("http://127.0.0.1:1");
  auto const list = nobody + "," + standby.url + "," + leader.url + "," + candidate.url;
  auto const run = chorus::cli::chorus({"--coordinator", list, "status"});
  CHECK(run.status == 0);
  CHECK(lines_of(run.out) ==
        std::vector<std::string>{
            "the verdict",
            "coordinator " + nobody + ": unreachable, cannot reach it at " + nobody + ": nobody listens there",
            "coordinator " + standby.url + ": standby, " + leader.url + " leads",
            "coordinator " + leader.url + ": leads",
            "coordinator " + candidate.url + ": unavailable, no coordinator leads at present"});
  auto const told = json::parse(chorus::cli::chorus({"--coordinator", list, "status", "--json"}).out);
  CHECK(told.at("coordinators").at(0).at("state") == "unreachable");
  CHECK(std::string(told.at("coordinators").at(1).at("leader").as_string()) == leader.url);
  CHECK(told.at("coordinators").at(2).at("state") == "leads");
}

TEST_CASE("status says what every coordinator answers also where none leads") {
  FakeCoordinator candidate;
  for (auto const* question : {"GET /v1", "GET /v1/status"})
    candidate.answer(question, 503,
                     R"({"code":"unavailable","status":503,"detail":"no coordinator leads at present"})");
  auto const run = chorus::cli::chorus({"--coordinator", candidate.url + ",http://127.0.0.1:1", "status"});
  CHECK(run.status == 1);
  CHECK(run.out.empty());
  auto const lines = lines_of(run.err);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "coordinator " + candidate.url + ": unavailable, no coordinator leads at present");
  CHECK(lines[1].find("coordinator http://127.0.0.1:1: unreachable") == 0);
  CHECK(lines[2].find("error: ") == 0);
}
