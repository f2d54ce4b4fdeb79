#include "server/cli/output/diagnosis.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace chorus;
using namespace chorus::cli;

namespace {

WorkerFacts worker(std::string id) {
  WorkerFacts facts;
  facts.worker.id = id;
  facts.worker.url = "http://" + id;
  facts.worker.state = "ready";
  facts.worker.version = "1.0";
  facts.worker.lease_ms = 5000;
  facts.worker.heard_ms_ago = 500;
  facts.by_coordinator.reachable = true;
  return facts;
}

// Four healthy workers in one group.
ClusterFacts cluster() {
  ClusterFacts facts;
  facts.version = "1.0";
  api::Group group;
  group.name = "g";
  group.state = "ready";
  group.requested.size = 4;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    facts.workers.push_back(worker("w" + std::to_string(rank)));
    group.members.push_back({rank, "w" + std::to_string(rank), {}, {}, {}, {}});
  }
  facts.groups.push_back(group);
  return facts;
}

// Returns the only finding; fails the test if there are more.
Finding only(ClusterFacts const& facts) {
  auto const findings = diagnose(facts);
  REQUIRE(findings.size() == 1);
  return findings.front();
}

bool says(Finding const& finding, std::string const& about, std::string const& part) {
  INFO(finding.about, ": ", finding.what);
  return finding.about == about && finding.what.find(part) != std::string::npos && !finding.advice.empty();
}

api::Collective succeeded(std::vector<double> waits) {
  api::Collective one;
  one.id = "c";
  one.state = "succeeded";
  one.seconds = 0.1;
  for (std::uint32_t rank = 0; rank < waits.size(); ++rank) {
    api::RunReport report;
    report.wait_seconds = waits[rank];
    auto& place = one.ranks.emplace_back();
    place.rank = rank;
    place.worker = "w" + std::to_string(rank);
    place.state = "succeeded";
    place.report = report;
  }
  return one;
}

}  // namespace

TEST_CASE("a healthy cluster has no findings") { CHECK(diagnose(cluster()).empty()); }

TEST_CASE("a worker that did not join is named") {
  auto facts = cluster();
  facts.groups[0].requested = {std::vector<std::string>{"w0", "w1", "w2", "w3", "w4"}, std::nullopt, "shrink", 1};
  CHECK(says(only(facts), "group g", "4 of the 5 members asked for; not there: w4"));
  CHECK(says(only({.version = "1.0"}), "coordinator", "no worker has joined"));
}

TEST_CASE("a lost worker is a problem, and one that is late with its lease") {
  auto facts = cluster();
  facts.workers[3].worker.state = "lost";
  facts.workers[3].worker.heard_ms_ago = 12300;
  CHECK(says(only(facts), "worker w3", "lost, and was last heard of 12.3 s ago"));
  facts.workers[3].worker.state = "ready";
  facts.workers[3].worker.heard_ms_ago = 4200;
  CHECK(says(only(facts), "worker w3", "last heard of 4.2 s ago, lost after 5.0 s"));
}

TEST_CASE("an address that cannot be reached by anyone, only by the coordinator, or only from here") {
  auto facts = cluster();
  facts.workers[1].unreachable = "no answer within 2 s";
  facts.workers[1].by_coordinator.reachable = false;
  facts.workers[1].by_coordinator.detail = "connection refused";
  CHECK(says(only(facts), "worker w1", "nobody answers at its address http://w1: connection refused"));
  facts.workers[1].unreachable.clear();
  CHECK(says(only(facts), "worker w1", "the coordinator does not reach it"));
  facts.workers[1].unreachable = "no answer within 2 s";
  facts.workers[1].by_coordinator.reachable = true;
  CHECK(only(facts).level == Finding::Level::note);
}

TEST_CASE("a name that processes take from each other is a problem, and one restart is not") {
  auto facts = cluster();
  facts.workers[1].worker.takeovers = 1;
  facts.workers[1].worker.rivals = {"http://w1:1", "http://w1:2"};
  CHECK(diagnose(facts).empty());
  facts.workers[1].worker.takeovers = 18;
  CHECK(says(only(facts), "worker w1",
             "its name changed hands 18 times within a minute: processes take it from each other, at http://w1:1, "
             "http://w1:2"));
  CHECK(only(facts).level == Finding::Level::problem);
}

TEST_CASE("a complaint of a ready service is reported") {
  auto facts = cluster();
  facts.workers[1].readiness.complaint = "4096 bytes of tensors are in private memory";
  CHECK(says(only(facts), "worker w1", "4096 bytes of tensors are in private memory"));
  CHECK(only(facts).level == Finding::Level::note);
  facts = cluster();
  facts.readiness.complaint = "nothing can be launched: the journal cannot be written";
  CHECK(says(only(facts), "coordinator", "nothing can be launched"));
  CHECK(only(facts).level == Finding::Level::problem);
}

TEST_CASE("a worker that is not ready says why, and the advice is not another reason") {
  auto facts = cluster();
  facts.workers[1].readiness.why_not = "the disk of the push log is full";
  CHECK(says(only(facts), "worker w1", "it is not ready: the disk of the push log is full"));
  CHECK(only(facts).advice == "it takes nothing new until that is over; its log says more");
}

TEST_CASE("what the coordinator's verdict says is reported once: red as a problem, amber as a note") {
  auto facts = cluster();
  facts.verdict.reasons.push_back({.level = "red", .text = "parameter p is lost: w1 had it", .parameter = "p"});
  CHECK(says(only(facts), "parameter p", "parameter p is lost: w1 had it"));
  CHECK(only(facts).level == Finding::Level::problem);
  CHECK(only(facts).advice.find("/v1/parameters/p") != std::string::npos);
  facts.verdict.reasons = {{.level = "amber", .text = "parameter p has fewer replicas", .parameter = "p"}};
  CHECK(only(facts).level == Finding::Level::note);
  facts.verdict.reasons = {{.level = "amber", .text = "whoever reaches this address may do everything"}};
  CHECK(says(only(facts), "coordinator", "whoever reaches this address"));
  facts.verdict.reasons = {{.level = "amber", .text = "worker w3 is lost", .worker = "w3"}};
  facts.workers[3].worker.state = "lost";
  CHECK(says(only(facts), "worker w3", "it is lost, and was last heard of"));
}

TEST_CASE("another version is reported with its workers") {
  auto facts = cluster();
  facts.workers[0].worker.version = facts.workers[2].worker.version = "0.9";
  CHECK(says(only(facts), "version", "w0, w2 run 0.9, the coordinator 1.0"));
}

TEST_CASE("a link is slow only in comparison with its level") {
  auto facts = cluster();
  for (auto const* to : {"w1", "w2", "w3"}) facts.links.push_back({"w0", to, "rack", 1e-4, 1e9});
  facts.links.push_back({"w1", "w2", "zone", 1e-2, 1e7});
  CHECK(diagnose(facts).empty());
  facts.links.push_back({"w1", "w3", "rack", 1e-4, 1e8});
  CHECK(says(only(facts), "link w1 - w3", "0.10 GB/s, links of its level (rack) 1.00"));
  facts.links.back() = {"w1", "w3", "rack", 5e-3, 1e9};
  CHECK(says(only(facts), "link w1 - w3", "latency is 5.0 ms"));
}

TEST_CASE("a worker for which the others wait repeatedly is a straggler") {
  auto facts = cluster();
  for (int i = 0; i < 3; ++i) facts.collectives.push_back(succeeded({0.08, 0.08, 0.001, 0.08}));
  CHECK(diagnose(facts).empty());
  facts.collectives.push_back(succeeded({0.08, 0.08, 0.001, 0.08}));
  CHECK(says(only(facts), "worker w2", "waited for it in 4 of the last 4 collectives"));
}

TEST_CASE("stalls are reported with the awaited ranks, for launched and called operations") {
  auto facts = cluster();
  api::Collective one;
  one.id = "c";
  one.state = "running";
  one.request.group = "g";
  one.stalled.emplace().text = "nothing has moved for 2.5 s: waiting for rank 2 ('w2'), which does not answer";
  facts.collectives.push_back(one);
  CHECK(says(only(facts), "collective c", "waiting for rank 2 ('w2')"));
  facts.collectives.clear();
  api::RunProgress run;
  run.run = "8000000000000001";
  run.group = "g";
  run.still_seconds = 3;
  run.waiting_for.push_back({1, "w1", "", "not_called", 3});
  facts.workers[0].runs.push_back(run);
  CHECK(says(only(facts), "worker w0", "waits for rank 1 (w1), which has not called"));
}

TEST_CASE("a stall that ended in failure before the check is reported with the failure") {
  auto facts = cluster();
  api::Collective failed;
  failed.id = "c";
  failed.state = "failed";
  failed.error.emplace(http::ProblemCode::peer_lost, "lost rank 2 (w2)");
  failed.stalled.emplace().text = "nothing has moved for 4.5 s: waiting for rank 2 ('w2'), which does not answer";
  facts.collectives = {failed};
  CHECK(says(only(facts), "collective c",
             "lost rank 2 (w2); before that nothing has moved for 4.5 s: waiting for rank 2"));
}

TEST_CASE("a degraded group, a coordinator that is not ready, and the last failure as a note at the end") {
  auto facts = cluster();
  api::Collective failed;
  failed.id = "c";
  failed.state = "failed";
  failed.error.emplace(http::ProblemCode::peer_lost, "lost rank 3 (w3)");
  facts.collectives = {failed, failed};
  CHECK(only(facts).level == Finding::Level::note);
  facts.groups[0].state = "degraded";
  facts.groups[0].lost = {"w3"};
  facts.readiness.why_not = "the journal cannot be written";
  auto const findings = diagnose(facts);
  REQUIRE(findings.size() == 3);
  CHECK(says(findings[0], "coordinator", "the journal cannot be written"));
  CHECK(says(findings[1], "group g", "it has lost w3"));
  CHECK(findings[2].level == Finding::Level::note);
}
