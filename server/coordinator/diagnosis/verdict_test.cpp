#include "server/coordinator/diagnosis/verdict.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::coordinator;

namespace {

api::Worker worker(std::string id, std::uint64_t heard_ms_ago, std::string state = "ready") {
  api::Worker worker;
  worker.id = std::move(id);
  worker.state = std::move(state);
  worker.version = "1";
  worker.lease_ms = 5000;
  worker.heard_ms_ago = heard_ms_ago;
  return worker;
}

api::Group group(std::string name, std::size_t members) {
  api::Group group;
  group.name = std::move(name);
  group.state = "ready";
  group.members.resize(members);
  return group;
}

api::Collective collective(std::string id, std::string state) {
  api::Collective one;
  one.id = std::move(id);
  one.state = std::move(state);
  one.request.group = "g";
  return one;
}

Facts four_workers() {
  Facts facts;
  for (auto const* id : {"w0", "w1", "w2", "w3"}) facts.workers.push_back(worker(id, 900));
  facts.groups.push_back(std::make_shared<api::Group const>(group("g", 4)));
  return facts;
}

}  // namespace

TEST_CASE("all workers are present") {
  auto const verdict = judge(four_workers());
  CHECK(verdict.level == "green");
  CHECK(verdict.text == "4 of 4 workers ready; 1 group; 0 collectives running");
  CHECK(verdict.reasons.empty());
}

TEST_CASE("no worker has joined yet") {
  auto const verdict = judge({});
  CHECK(verdict.level == "amber");
  CHECK(verdict.text == "Waiting for the first worker to join");
}

TEST_CASE("a lost member makes its group unusable, and is named with the time of its last sign of life") {
  auto facts = four_workers();
  facts.workers[3] = worker("w3", 4000, "lost");
  auto degraded = group("g", 4);
  degraded.state = "degraded";
  degraded.lost = {"w3"};
  facts.groups = {std::make_shared<api::Group const>(degraded)};
  auto const verdict = judge(facts);
  CHECK(verdict.level == "red");
  CHECK(verdict.text ==
        "3 of 4 workers ready; waiting for w3, last heard 4.0 s ago; 1 group (1 degraded); 0 collectives running");
  REQUIRE(verdict.reasons.size() == 2);
  CHECK(verdict.reasons[0].group == "g");
  CHECK(verdict.reasons[0].text == "group g is degraded: it has lost w3; PUT it again to go on");
  CHECK(verdict.reasons[1].worker == "w3");
}

TEST_CASE("a lost worker that no group needs is amber, and so is a group that continues with fewer") {
  auto facts = four_workers();
  facts.workers[3] = worker("w3", 4000, "lost");
  auto smaller = group("g", 3);
  smaller.requested.size = 4;
  facts.groups = {std::make_shared<api::Group const>(smaller)};
  auto const verdict = judge(facts);
  CHECK(verdict.level == "amber");
  REQUIRE(verdict.reasons.size() == 2);
  CHECK(verdict.reasons[1].text == "group g goes on with 3 of 4 workers");
}

TEST_CASE("a worker that is silent for half its lease is late") {
  auto facts = four_workers();
  facts.workers[1].heard_ms_ago = 2500;
  CHECK(judge(facts).level == "green");
  facts.workers[1].heard_ms_ago = 2501;
  CHECK(judge(facts).level == "amber");
  CHECK(judge(facts).text == "4 of 4 workers ready; late: w1, last heard 2.5 s ago; 1 group; 0 collectives running");
}

TEST_CASE("a worker whose name several processes claim is amber") {
  auto facts = four_workers();
  facts.workers[1].takeovers = 2;
  facts.workers[1].rivals = {"http://a:1", "http://b:2"};
  CHECK(judge(facts).level == "green");
  facts.workers[1].takeovers = 3;
  auto const verdict = judge(facts);
  CHECK(verdict.level == "amber");
  REQUIRE(verdict.reasons.size() == 1);
  CHECK(verdict.reasons[0].worker == "w1");
  CHECK(verdict.reasons[0].text ==
        "worker w1 changed hands 3 times within a minute: processes take the name from each other, at http://a:1, "
        "http://b:2");
}

TEST_CASE("long lists of names are cut, and counted") {
  Facts facts;
  for (auto const* id : {"a", "b", "c", "d", "e"}) facts.workers.push_back(worker(id, 1000, "lost"));
  CHECK(judge(facts).text.find("c, last heard 1.0 s ago and 2 more;") != std::string::npos);
}

TEST_CASE("a running collective names the awaited ranks, once others have ended") {
  auto facts = four_workers();
  auto running = collective("c-1", "running");
  running.ranks = {{0, "w0", 0, "running", {}}, {1, "w1", 0, "running", {}}};
  facts.collectives = {running};
  CHECK(judge(facts).level == "green");
  facts.collectives[0].ranks[0].state = "succeeded";
  auto const verdict = judge(facts);
  CHECK(verdict.level == "amber");
  CHECK(verdict.reasons.at(0).text == "collective c-1 waits for rank 1 (w1)");
}

TEST_CASE("a stalled collective is in the sentence, with the awaited ranks, until it has ended") {
  auto facts = four_workers();
  auto stalled = collective("c-1", "running");
  stalled.stalled.emplace();
  stalled.stalled->waiting_for = {1};
  stalled.stalled->ranks = {{0, "w0", "running", "", {}, 2.3}, {1, "w3", "silent", "", {}, 2.3}};
  stalled.stalled->text = "nothing has moved for 2.3 s: waiting for rank 1 ('w3'), which does not answer";
  facts.collectives = {stalled};
  auto const verdict = judge(facts);
  CHECK(verdict.level == "amber");
  CHECK(verdict.text == "4 of 4 workers ready; 1 group; 1 collective running, 1 stalled: c-1 waits for rank 1 (w3)");
  REQUIRE(verdict.reasons.size() == 1);
  CHECK(verdict.reasons[0].text == "collective c-1 is stalled: " + stalled.stalled->text);
  CHECK(verdict.reasons[0].collective == "c-1");
  facts.collectives[0].state = "failed";  // the record keeps the stall
  CHECK(judge(facts).text == "4 of 4 workers ready; 1 group; 0 collectives running");
}

TEST_CASE("a caller without rights hears why it is told nothing, and what to do") {
  auto const verdict = verdict_for_strangers();
  CHECK(verdict.level == "amber");
  CHECK(verdict.text.find("token of the role read") != std::string::npos);
  CHECK(verdict.reasons.at(0).text.find("chorus token create --role read") != std::string::npos);
}

TEST_CASE("only the last collective of a group counts") {
  auto facts = four_workers();
  auto failed = collective("c-1", "failed");
  failed.error = http::Problem(http::ProblemCode::peer_lost, "rank 2 is gone");
  facts.collectives = {failed, collective("c-0", "succeeded")};
  CHECK(judge(facts).reasons.at(0).text == "the last collective in group g failed: rank 2 is gone");
  facts.collectives = {collective("c-2", "succeeded"), failed};
  CHECK(judge(facts).level == "green");
}

TEST_CASE("failures of the coordinator itself come first") {
  auto facts = four_workers();
  facts.workers[0].version = "2";
  facts.draining = true;
  facts.journal_failure = "the disk is full";
  api::Parameter parameter;
  parameter.name = "w";
  parameter.state = "lost";
  facts.parameters = {parameter};
  auto const verdict = judge(facts);
  CHECK(verdict.level == "red");
  REQUIRE(verdict.reasons.size() == 4);
  CHECK(verdict.reasons[0].text == "nothing can be launched: the disk is full");
  CHECK(verdict.reasons[1].parameter == "w");
  CHECK(verdict.reasons[3].text == "workers of different versions: 1, 2");
}
