// Workers that die, stop or never come: the others fail within the deadline and name them; no tensor changes.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::testing;
using chorus::testing::mentions;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

std::chrono::steady_clock::duration time_of(auto&& action) {
  auto const start = std::chrono::steady_clock::now();
  action();
  return std::chrono::steady_clock::now() - start;
}

void put_everywhere(Cluster& cluster, std::size_t count) {
  for (std::size_t i = 0; i < cluster.size(); ++i)
    REQUIRE(cluster.worker(i).put_tensor("x", "f32", std::vector<float>(count, static_cast<float>(i + 1))).status /
                100 ==
            2);
}

}  // namespace

TEST_CASE("a worker that is killed while its peers wait for it is named by every survivor at once") {
  Cluster cluster(4);
  auto const ranks = cluster.make_group("g");
  put_everywhere(cluster, 100000);
  std::size_t const victim = 3;

  std::vector<std::thread> calls;
  std::vector<Answer> answers(3);
  for (std::size_t i = 0; i < 3; ++i)
    calls.emplace_back([&, i] {
      answers[i] =
          cluster.worker(i).post("/v1/groups/g/all_reduce", R"({"tensor":"x","algorithm":"ring","timeout_ms":20000})");
    });
  // All ranks wait for the victim's call once a neighbour has opened its link to it.
  REQUIRE(eventually([&] { return cluster.worker(victim).metric("chorus_link_connections{") >= 1; }));
  auto const took = time_of([&] {
    cluster.kill_worker(victim);
    for (auto& call : calls) call.join();
  });

  CHECK(took < 10s);
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.code() == "peer_lost");
    CHECK(mentions(answer.body, "w3"));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(cluster.worker(i).get_tensor<float>("x") == std::vector<float>(100000, static_cast<float>(i + 1)));
    CHECK(cluster.worker(i).tensor_version("x") == 1);
  }
}

TEST_CASE(
    "a worker that is killed during a launched collective is named by the record, and the survivors form a new epoch") {
  Cluster cluster(4, {}, {"--lease-ms", "1000"});
  cluster.make_group("g");
  put_everywhere(cluster, 16 << 20);  // 64 MiB each: long enough to be killed in the middle
  std::string body;
  std::thread launch([&] {
    body = cluster.coordinator
               .put("/v1/collectives/c?wait=30s", R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":20000})")
               .body;
  });
  REQUIRE(eventually([&] {
    auto const record = cluster.coordinator.get("/v1/collectives/c");
    return record.status == 200 && record.json().at("state") == "running";
  }));
  auto const took = time_of([&] {
    cluster.kill_worker(2);
    launch.join();
  });

  CHECK(took < 10s);
  auto const record = json::parse(body);
  INFO(body.substr(0, 2000));
  CHECK(record.at("state") == "failed");
  CHECK(record.at("error").at("code") == "peer_lost");
  CHECK(mentions(std::string(record.at("error").at("detail").as_string()), "w2"));
  for (std::size_t const i : {0, 1, 3}) CHECK(cluster.worker(i).tensor_version("x") == 1);

  cluster.make_group("g", {"w0", "w1", "w3"});
  auto const retry = cluster.run({{"group", "g"}, {"tensor", "x"}});
  INFO(json::serialize(retry).substr(0, 2000));
  CHECK(retry.at("state") == "succeeded");
  CHECK(retry.at("epoch").to_number<int>() > record.at("epoch").to_number<int>());
  CHECK(cluster.worker(0).get_tensor<float>("x") == std::vector<float>(16 << 20, 1 + 2 + 4));
}

TEST_CASE("a member that never calls is named by the others at their deadline, and a new epoch repairs the group") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere(cluster, 5000);
  std::vector<std::thread> calls;
  std::vector<Answer> answers(2);
  auto const took = time_of([&] {
    for (std::size_t i = 0; i < 2; ++i)
      calls.emplace_back([&, i] {
        answers[i] = cluster.worker(i).post("/v1/groups/g/all_reduce", R"({"tensor":"x","timeout_ms":700})");
      });
    for (auto& call : calls) call.join();
  });
  CHECK(took >= 600ms);
  CHECK(took < 5s);
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.code() == "deadline_exceeded");
    CHECK(mentions(answer.body, "w2"));
  }
  CHECK(cluster.worker(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x"})").code() == "group_broken");

  cluster.make_group("g");
  CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
}

TEST_CASE("members that call different operations fail with plan_mismatch and both descriptions") {
  Cluster cluster(2);
  cluster.make_group("g");
  put_everywhere(cluster, 5000);
  std::vector<Answer> answers(2);
  std::thread other(
      [&] { answers[1] = cluster.worker(1).post("/v1/groups/g/all_reduce", R"({"tensor":"x","reduce":"max"})"); });
  answers[0] = cluster.worker(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x","reduce":"sum"})");
  other.join();
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
    CHECK(mentions(answer.body, "sum"));
    CHECK(mentions(answer.body, "max"));
  }
}

TEST_CASE("a stopped worker fails the collective at its deadline, is named by it, and is marked as lost") {
  Cluster cluster(3, {}, {"--lease-ms", "800"});
  cluster.make_group("g");
  put_everywhere(cluster, 5000);
  cluster.worker(1).process.signal(SIGSTOP);
  auto const took = time_of([&] {
    auto const record = cluster.run({{"group", "g"}, {"tensor", "x"}, {"timeout_ms", 1000}});
    INFO(json::serialize(record));
    CHECK(mentions(json::serialize(record), "w1"));
  });
  CHECK(took < 5s);
  CHECK(eventually([&] { return cluster.coordinator.get("/v1/workers/w1").json().at("state") == "lost"; }));
  CHECK(cluster.coordinator.get("/v1/groups/g").json().at("state") == "degraded");

  cluster.worker(1).process.signal(SIGCONT);
  CHECK(eventually([&] { return cluster.coordinator.get("/v1/workers/w1").json().at("state") == "ready"; }));
  cluster.make_group("g");
  CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
}

TEST_CASE("a cancelled collective stops on every rank and changes no tensor") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere(cluster, 16 << 20);
  REQUIRE(cluster.coordinator.put("/v1/collectives/c", R"({"group":"g","tensor":"x","algorithm":"ring"})").status ==
          202);
  CHECK(cluster.coordinator.erase("/v1/collectives/c").status / 100 == 2);
  auto const record = cluster.coordinator.get("/v1/collectives/c?wait=10s").json();
  CHECK(record.at("state") == "cancelled");
  for (std::size_t i = 0; i < 3; ++i) CHECK(cluster.worker(i).tensor_version("x") == 1);
  CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
}

TEST_CASE("a group that shrinks has its next epoch by itself after a call whose time ended before its turn") {
  Cluster cluster(2);
  REQUIRE(cluster.coordinator.put("/v1/groups/g", R"({"workers":["w0","w1"],"on_failure":"shrink"})").status == 201);
  put_everywhere(cluster, 10);
  auto const call = [&](std::size_t i, std::string const& timeout_ms) {
    return cluster.worker(i).post("/v1/groups/g/all_reduce", R"({"tensor":"x","timeout_ms":)" + timeout_ms + "}");
  };
  std::thread waiting([&] { call(0, "60000"); });
  REQUIRE(eventually([&] { return cluster.worker(0).get("/v1/groups/g").json().at("next_sequence") == 1; }));
  CHECK(call(0, "1").code() == "deadline_exceeded");
  CHECK(eventually([&] {
    auto const group = cluster.coordinator.get("/v1/groups/g").json();
    return group.at("epoch") == 2 && group.at("state") == "ready";
  }));
  waiting.join();
  std::thread other([&] { CHECK(call(1, "60000").status == 200); });
  CHECK(call(0, "60000").status == 200);
  other.join();
}

TEST_CASE("a worker that restarts under its old name is a new incarnation, and its group is ready again") {
  Cluster cluster(3);
  auto const ranks = cluster.make_group("g");
  auto const before = std::string(cluster.coordinator.get("/v1/workers/w2").json().at("incarnation").as_string());
  cluster.kill_worker(2);
  auto& again = cluster.add_worker("w2", "host=h0");
  CHECK(cluster.coordinator.get("/v1/workers/w2").json().at("incarnation").as_string() != before);
  cluster.make_group("g", {"w0", "w1", "w2"});
  for (std::size_t const i : {0, 1}) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(3, 1));
  again.put_tensor("x", "f32", std::vector<float>(3, 1));
  CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
  CHECK(again.get_tensor<float>("x") == std::vector<float>(3, 3));
}

TEST_CASE("services end cleanly on SIGTERM, and a worker that leaves is removed at once") {
  Cluster cluster(2);
  cluster.worker(1).process.signal(SIGTERM);
  CHECK(cluster.worker(1).process.wait() == 0);
  CHECK(cluster.coordinator.get("/v1/workers").json().at("items").as_array().size() == 1);
  cluster.coordinator.process.signal(SIGTERM);
  CHECK(cluster.coordinator.process.wait() == 0);
}
