// Runs as the coordinator launches them, over real links between workers of this process.
#include <doctest/doctest.h>

#include <algorithm>

#include "http/json/json.hpp"
#include "tests/support/mentions.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using chorus::testing::mentions;

namespace {

std::string state_of(Answer const& answer) { return std::string(answer.json().at("state").as_string()); }

std::vector<float> ones(float value = 1) { return std::vector<float>(1000, value); }

}  // namespace

TEST_CASE("a result is held beside the old version until it is committed, once, however often the commit is sent") {
  LiveGroup group(3);
  group.put_everywhere("x");
  auto const reports = group.run(7);
  for (auto const& report : reports) {
    INFO(report.body);
    REQUIRE(report.status == 200);
    CHECK(state_of(report) == "succeeded");
    CHECK(report.json().at("output_digest") == reports[0].json().at("output_digest"));
    CHECK(report.json().at("bytes_sent").to_number<int>() > 4000);
  }
  CHECK(reports[0].json().at("input_digest") != reports[1].json().at("input_digest"));
  CHECK(group.at(1).get_tensor<float>("x") == ones(2));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(group.commit(rank, 7).json().at("version") == 2);
    CHECK(group.commit(rank, 7).json().at("version") == 2);
    CHECK(group.at(rank).get_tensor<float>("x") == group.sum());
    CHECK(group.at(rank).version_of("x") == 2);
  }
  CHECK(group.abort(0, 7).code() == "mismatch");
}

TEST_CASE("every algorithm and schedule gives the same sum") {
  LiveGroup group(3);
  std::uint64_t run = 1;
  for (auto const* algorithm : {"ring", "tree", "centralized"})
    for (std::uint64_t const segment : {std::uint64_t{4096}, std::uint64_t{262144}}) {
      group.put_everywhere("x", 50000);
      auto const version = group.at(0).version_of("x");
      auto const reports = group.run(run, [&](auto& request) {
        request.algorithm = algorithm;
        request.elements = 50000;
        request.version = version;
        request.schedule.segment_bytes = segment;
      });
      for (std::size_t rank = 0; rank < 3; ++rank) {
        INFO(reports[rank].body);
        CHECK(group.commit(rank, run).status == 200);
        CHECK(group.at(rank).get_tensor<float>("x") == group.sum(50000));
      }
      ++run;
    }
}

TEST_CASE("a run that does not name its members is one of the epoch's members, in their ranks or in the order of ids") {
  LiveGroup group(3);
  group.assign(1, [](auto& assignment) { assignment.group.by_position = {2, 0, 1}; });
  group.put_everywhere("x");
  CHECK(group.run(1, [](auto& request) { request.members.clear(); })[0].json().at("state") == "succeeded");
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK(group.abort(rank, 1).status == 204);
  group.assign(2, [](auto& assignment) {
    auto& members = assignment.group.members;
    std::reverse(members.begin(), members.end());
    for (std::uint32_t rank = 0; rank < members.size(); ++rank) members[rank].rank = rank;
  });
  auto const unnamed = [](auto& request) {
    request.members.clear();
    request.epoch = 2;
    request.algorithm = "allpairs";
  };
  auto misled = group.request(0, 3);
  unnamed(misled);
  CHECK(group.launch(0, misled).code() == "epoch_fenced");  // rank 0 is another worker
  auto const by_worker = group.run(2, [&](auto& request) {
    unnamed(request);
    request.by_worker = true;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(by_worker[rank].json().at("state") == "succeeded");
    CHECK(group.commit(rank, 2).status == 200);
    CHECK(group.at(rank).get_tensor<float>("x") == group.sum());
  }
  auto later = group.request(0, 3);
  later.members.clear();
  later.epoch = 3;
  CHECK(group.launch(0, later).code() == "epoch_fenced");
  later.group = "other";
  CHECK(group.launch(0, later).code() == "epoch_fenced");
}

TEST_CASE("a run that is asked for twice runs once") {
  LiveGroup group(2);
  group.put_everywhere("x");
  auto const first = group.run(7), again = group.run(7);
  CHECK(again[0].body == first[0].body);
  CHECK(mentions(group.at(0).metrics(),
                 R"(chorus_collectives_total{op="all_reduce",algorithm="ring",result="succeeded"} 1)"));
  auto other = group.request(0, 7);
  other.timeout_ms = 19999;
  CHECK(group.launch(0, other).code() == "idempotency_reused");
}

TEST_CASE("a result that is dropped leaves the old version") {
  LiveGroup group(2);
  group.put_everywhere("x");
  group.run(7);
  CHECK(group.abort(0, 7).status == 204);
  CHECK(group.abort(0, 7).status == 204);
  CHECK(group.commit(0, 7).code() == "cancelled");
  CHECK(group.at(0).get_tensor<float>("x") == ones());
  CHECK(group.at(0).version_of("x") == 1);
}

TEST_CASE("an abort ends a run that waits for its peers") {
  LiveGroup group(2);
  group.put_everywhere("x");
  Answer report;
  std::thread launch([&] { report = group.launch(0, group.request(0, 7)); });
  // The run has begun when its link to the peer exists.
  while (!mentions(group.at(1).metrics(), R"(chorus_link_connections{peer="w0",link="shm"} 1)")) continue;
  CHECK(group.abort(0, 7).status == 204);
  launch.join();
  CHECK(state_of(report) == "failed");
  CHECK(report.json().at("error").at("code") == "cancelled");
  CHECK(group.commit(0, 7).code() == "cancelled");
}

TEST_CASE("an abort that overtakes its run keeps it from starting") {
  LiveGroup group(2);
  group.put_everywhere("x");
  CHECK(group.abort(0, 7).status == 204);
  CHECK(group.launch(0, group.request(0, 7)).code() == "cancelled");
}

TEST_CASE("a rank that never comes is named at the deadline, and no tensor changes") {
  LiveGroup group(3);
  group.put_everywhere("x");
  auto const reports = at_once(2, [&](std::size_t rank) {
    auto request = group.request(rank, 7);
    request.timeout_ms = 300;
    return group.launch(rank, request);
  });
  for (auto const& report : reports) {
    INFO(report.body);
    CHECK(state_of(report) == "failed");
    CHECK(report.json().at("error").at("code") == "deadline_exceeded");
    CHECK(mentions(report.body, "w2"));
  }
  CHECK(group.at(0).version_of("x") == 1);
  CHECK(
      mentions(group.at(0).metrics(), R"(chorus_collective_errors_total{op="all_reduce",kind="deadline_exceeded"} 1)"));
}

TEST_CASE("in place: the tensor is busy until the commit, and its own memory holds the result") {
  LiveGroup group(2);
  group.put_everywhere("x");
  auto const reports = group.run(7, [](auto& request) { request.in_place = true; });
  for (auto const& report : reports) CHECK(state_of(report) == "succeeded");
  CHECK(group.at(0).get("/v1/tensors/x").code() == "busy");
  CHECK(group.at(0).put_bytes("x", "y").code() == "busy");
  CHECK(group.commit(0, 7).json().at("version") == 2);
  CHECK(group.at(0).get_tensor<float>("x") == group.sum());
  // In place gives up atomicity: overwritten memory is a new version, dropped or not.
  CHECK(group.abort(1, 7).status == 204);
  CHECK(group.at(1).version_of("x") == 2);
}

TEST_CASE("a tensor that was replaced meanwhile is not overwritten by the result") {
  LiveGroup group(2);
  group.put_everywhere("x");
  group.run(7);
  group.at(0).put_tensor("x", "f32", ones(5));
  auto const refused = group.commit(0, 7);
  CHECK(refused.code() == "mismatch");
  CHECK(mentions(refused.body, "version 2"));
  CHECK(group.at(0).get_tensor<float>("x") == ones(5));
}

TEST_CASE("a tensor that was not admitted is refused with both values, and the run may be asked for again") {
  LiveGroup group(1);
  group.at(0).put_tensor("x", "f32", ones());
  auto const refused = [&](auto change, std::string const& code, std::string const& part) {
    auto request = group.request(0, 7);
    change(request);
    auto const answer = group.launch(0, request);
    INFO(answer.body);
    CHECK(answer.code() == code);
    CHECK(mentions(answer.body, part));
  };
  refused([](auto& r) { r.version = 2; }, "mismatch", "expected version 2, found version 1");
  refused([](auto& r) { r.dtype = "i32"; }, "mismatch", "expected i32, found f32");
  refused([](auto& r) { r.elements = 999; }, "mismatch", "expected 999 elements, found 1000 elements");
  refused([](auto& r) { r.tensor = "nobody"; }, "unknown_tensor", "nobody");
  refused([](auto& r) { r.op = "broadcast"; }, "unsupported", "broadcast");
  refused([](auto& r) { r.reduce = "bxor"; }, "unsupported", "bxor of f32: bit operations are for integers");
  refused([](auto& r) { r.algorithm = "rign"; }, "invalid_field", "/algorithm");
  refused([](auto& r) { r.root = 1; }, "invalid_field", "root");
  refused([](auto& r) { r.op = "all_redcue"; }, "invalid_field", "/op");
  refused([](auto& r) { r.dtype = "F32"; }, "invalid_field", "/dtype");
  refused([](auto& r) { r.reduce = "mean"; }, "invalid_field", "/reduce");
  refused([](auto& r) { r.token = "xyz"; }, "invalid_field", "/token");
  refused([](auto& r) { r.tensor = "../x"; }, "invalid_field", "/tensor");
  refused([](auto& r) { r.timeout_ms = 0; }, "invalid_field", "/timeout_ms");
  refused([](auto& r) { r.timeout_ms = ~std::uint64_t{0}; }, "invalid_field", "/timeout_ms");
  refused([](auto& r) { r.schedule.segment_bytes = 1; }, "invalid_field", "/schedule/segment_bytes");
  refused([](auto& r) { r.schedule.window = 0; }, "invalid_field", "/schedule/window");
  refused([](auto& r) { r.contributions = std::uint64_t{1} << 32; }, "invalid_field", "/contributions");
  refused([](auto& r) { r.rank = 1; }, "invalid_field", "/rank");
  refused([](auto& r) { r.members.clear(); }, "epoch_fenced", "not in epoch 1 of group g");
  refused([](auto& r) { r.members[0].rank = 5; }, "invalid_field", "/members/0/rank");
  refused([](auto& r) { r.members[0].worker = "a/b"; }, "invalid_field", "/members/0/worker");
  refused([](auto& r) { r.members[0].incarnation = "1"; }, "invalid_field", "/members/0/incarnation");
  refused([](auto& r) { r.members[0].incarnation = "0000000000000001"; }, "epoch_fenced", "0000000000000001");
  refused([](auto& r) { r.members[0].worker = "other"; }, "epoch_fenced", "other");
  CHECK(state_of(group.launch(0, group.request(0, 7))) == "succeeded");
}

TEST_CASE("invalid runs are refused") {
  LiveGroup group(1);
  auto& worker = group.at(0);
  CHECK(group.commit(0, 99).code() == "unknown_run");
  CHECK(worker.put("/v1/runs/x", "{}").code() == "bad_request");
  CHECK(worker.put("/v1/runs/99999999999999999999", "{}").code() == "bad_request");
  CHECK(worker.put("/v1/runs/7", "{").code() == "malformed_json");
  CHECK(worker.put("/v1/runs/7", "{}").code() == "invalid_field");
  auto request = group.request(0, 7);
  CHECK(worker.put("/v1/runs/8", chorus::http::encode(request)).code() == "invalid_field");
  request.run = std::uint64_t{1} << 63;
  CHECK(group.launch(0, request).code() == "invalid_field");
  CHECK(worker.get("/livez").status == 200);
}

TEST_CASE("a run of a retired epoch is refused") {
  LiveGroup group(1);
  group.at(0).put_tensor("x", "f32", ones());
  group.assign(3);
  auto const refused = group.launch(0, group.request(0, 7));
  CHECK(refused.code() == "epoch_fenced");
  CHECK(mentions(refused.body, "the highest seen is 3"));
}

TEST_CASE("a worker that is told to stop refuses new runs and ends those that wait") {
  LiveGroup group(2);
  group.put_everywhere("x");
  Answer report;
  std::thread launch([&] { report = group.launch(0, group.request(0, 7)); });
  while (!mentions(group.at(1).metrics(), R"(chorus_link_connections{peer="w0",link="shm"} 1)")) continue;
  group.at(0).stop();
  launch.join();
  CHECK((report.status == 0 || report.json().at("error").at("code") == "cancelled"));
}
