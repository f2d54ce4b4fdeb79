// Collectives over real processes, with exact results.
#include <doctest/doctest.h>

#include <numeric>
#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

// Values that differ between ranks and whose sums are exact in every dtype and order.
template <class T>
std::vector<T> values_of(std::size_t worker, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>((i * 7 + worker * 3) % 11 + worker);
  return values;
}

template <class T>
std::vector<T> sum_of(std::size_t workers, std::size_t count) {
  std::vector<T> sum(count);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    auto const values = values_of<T>(worker, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<T>(sum[i] + values[i]);
  }
  return sum;
}

template <class T>
void put_everywhere(Cluster& cluster, std::string const& tensor, std::string const& dtype, std::size_t count) {
  for (std::size_t i = 0; i < cluster.size(); ++i)
    REQUIRE(cluster.worker(i).put_tensor(tensor, dtype, values_of<T>(i, count)).status / 100 == 2);
}

template <class T>
void expect_everywhere(Cluster& cluster, std::string const& tensor, std::vector<T> const& expected) {
  for (std::size_t i = 0; i < cluster.size(); ++i) CHECK(cluster.worker(i).get_tensor<T>(tensor) == expected);
}

void expect_success(json::value const& collective) {
  INFO(json::serialize(collective));
  REQUIRE(collective.as_object().contains("state"));
  CHECK(collective.at("state") == "succeeded");
}

}  // namespace

TEST_CASE("every algorithm gives every rank the exact sum and moves every version by one") {
  Cluster cluster(4);
  cluster.make_group("g");
  for (auto const* algorithm : {"ring", "tree", "centralized", "auto"}) {
    CAPTURE(algorithm);
    put_everywhere<float>(cluster, "x", "f32", 1009);
    auto const version = cluster.worker(2).tensor_version("x");
    auto const collective =
        cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "x"}, {"algorithm", algorithm}});
    expect_success(collective);
    if (std::string_view(algorithm) != "auto") CHECK(collective.at("algorithm") == algorithm);
    CHECK_FALSE(collective.at("reason").as_string().empty());
    CHECK(collective.at("ranks").as_array().size() == 4);
    expect_everywhere(cluster, "x", sum_of<float>(4, 1009));
    CHECK(cluster.worker(2).tensor_version("x") == version + 1);
  }
}

TEST_CASE("every dtype and reduce operation, with element counts that the ranks do not divide") {
  Cluster cluster(3);
  cluster.make_group("g");
  for (std::size_t const count : {0, 1, 2, 3, 4, 1009}) {
    CAPTURE(count);
    put_everywhere<double>(cluster, "x", "f64", count);
    expect_success(cluster.run({{"group", "g"}, {"tensor", "x"}, {"algorithm", "ring"}}));
    expect_everywhere(cluster, "x", sum_of<double>(3, count));

    put_everywhere<std::int32_t>(cluster, "i", "i32", count);
    expect_success(cluster.run({{"group", "g"}, {"tensor", "i"}, {"algorithm", "tree"}, {"arity", 3}}));
    expect_everywhere(cluster, "i", sum_of<std::int32_t>(3, count));
  }
  auto const reduce = [&](char const* op, std::vector<std::int64_t> expected) {
    for (std::size_t i = 0; i < 3; ++i)
      cluster.worker(i).put_tensor("r", "i64", std::vector<std::int64_t>{static_cast<std::int64_t>(i) + 1, -5, 7});
    expect_success(cluster.run({{"group", "g"}, {"tensor", "r"}, {"reduce", op}, {"algorithm", "ring"}}));
    expect_everywhere(cluster, "r", expected);
  };
  reduce("sum", {6, -15, 21});
  reduce("avg", {2, -5, 7});
  reduce("min", {1, -5, 7});
  reduce("max", {3, -5, 7});
  reduce("prod", {6, -125, 343});
}

TEST_CASE("two and a hundred launches over the same tensor succeed") {
  Cluster cluster(4);
  cluster.make_group("g");
  for (std::size_t i = 0; i < 4; ++i) cluster.worker(i).put_tensor("x", "f64", std::vector<double>(257, 1));
  double expected = 1;  // always a power of two, so exact
  for (int call = 0; call < 100; ++call) {
    expect_success(cluster.run({{"group", "g"}, {"tensor", "x"}, {"reduce", call % 2 == 0 ? "sum" : "avg"}}));
    if (call % 2 == 0) expected *= 4;
    if (call % 20 == 0) CHECK(cluster.worker(3).get_tensor<double>("x").front() == expected);
  }
  expect_everywhere(cluster, "x", std::vector<double>(257, expected));
  CHECK(cluster.worker(0).tensor_version("x") == 101);
}

TEST_CASE("several collectives run at once on one group and on overlapping groups") {
  Cluster cluster(4);
  cluster.make_group("all");
  cluster.make_group("left", {"w0", "w1", "w2"});
  cluster.make_group("right", {"w1", "w2", "w3"});
  auto const tensors = {"a", "b", "c", "d"};
  for (auto const* tensor : tensors) put_everywhere<double>(cluster, tensor, "f64", 50000);
  put_everywhere<double>(cluster, "l", "f64", 20000);
  put_everywhere<double>(cluster, "r", "f64", 20000);

  std::vector<std::thread> launches;
  std::vector<json::value> results(6);
  auto const launch = [&](std::size_t slot, json::object request) {
    launches.emplace_back([&, slot, request = std::move(request)] { results[slot] = cluster.run(request); });
  };
  std::size_t slot = 0;
  for (auto const* tensor : tensors) {
    launch(slot, {{"group", "all"}, {"tensor", tensor}, {"algorithm", slot % 2 == 0 ? "ring" : "tree"}});
    ++slot;
  }
  launch(slot++, {{"group", "left"}, {"tensor", "l"}, {"algorithm", "ring"}});
  launch(slot++, {{"group", "right"}, {"tensor", "r"}, {"algorithm", "centralized"}});
  for (auto& thread : launches) thread.join();

  for (auto const& result : results) expect_success(result);
  for (auto const* tensor : tensors) expect_everywhere(cluster, tensor, sum_of<double>(4, 50000));
  CHECK(cluster.worker(0).get_tensor<double>("l") == sum_of<double>(3, 20000));
  CHECK(cluster.worker(3).get_tensor<double>("l") == values_of<double>(3, 20000));
  CHECK(cluster.worker(0).get_tensor<double>("r") == values_of<double>(0, 20000));
}

TEST_CASE("members call their own workers without the coordinator") {
  Cluster cluster(4);
  cluster.make_group("g");
  cluster.coordinator.process.signal(SIGSTOP);
  for (int call = 0; call < 20; ++call) {
    put_everywhere<float>(cluster, "grad", "f32", 9611);
    std::vector<std::thread> calls;
    std::vector<Answer> answers(4);
    for (std::size_t i = 0; i < 4; ++i)
      calls.emplace_back([&, i] {
        answers[i] = cluster.worker(i).post("/v1/groups/g/all_reduce", R"({"tensor":"grad","reduce":"sum"})");
      });
    for (auto& thread : calls) thread.join();
    for (auto const& answer : answers) {
      INFO(answer.body);
      CHECK(answer.status == 200);
    }
    expect_everywhere(cluster, "grad", sum_of<float>(4, 9611));
  }
  cluster.coordinator.process.signal(SIGCONT);
}

TEST_CASE("with in_place the tensor's own memory holds the result, as the next version") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere<float>(cluster, "x", "f32", 70001);
  expect_success(cluster.run({{"group", "g"}, {"tensor", "x"}, {"algorithm", "ring"}, {"in_place", true}}));
  expect_everywhere(cluster, "x", sum_of<float>(3, 70001));
  CHECK(cluster.worker(1).tensor_version("x") == 2);
}

TEST_CASE("ranks follow the reported locality: the ring enters every rack once") {
  Cluster cluster(4, {"rack=a,host=1", "rack=b,host=2", "rack=a,host=3", "rack=b,host=4"});
  auto const ranks = cluster.make_group("g");
  CHECK(ranks == std::vector<std::string>{"w0", "w2", "w1", "w3"});
  auto const group = cluster.coordinator.get("/v1/groups/g").json();
  CHECK(group.at("stretch").at("assigned").to_number<double>() <
        group.at("stretch").at("arrival_order").to_number<double>());
  CHECK(group.at("epoch").to_number<int>() == 1);
}

TEST_CASE("metrics report bytes per peer, latencies and results") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere<float>(cluster, "x", "f32", 100000);
  expect_success(cluster.run({{"group", "g"}, {"tensor", "x"}, {"algorithm", "ring"}}));
  auto const& worker = cluster.worker(0);
  CHECK(worker.metric("chorus_link_sent_bytes_total{") >= 4 * 100000);
  CHECK(worker.metric("chorus_link_received_bytes_total{") >= 4 * 100000);
  CHECK(worker.metric("chorus_link_busy_seconds_total{") > 0);
  CHECK(worker.metric("chorus_link_connections{peer=\"w1\",link=\"shm\"}") >= 1);
  CHECK(worker.metric("chorus_collective_duration_seconds_count{") == 1);
  CHECK(worker.metric("chorus_collective_step_duration_seconds_count{") == 1);
  CHECK(cluster.coordinator.metric("chorus_members{state=\"ready\"}") == 3);
  CHECK(cluster.coordinator.metric("chorus_collectives_total{") == 1);
}

TEST_CASE("links between racks are measured when workers join, and the cost model uses the measurements") {
  Cluster cluster(3, {"rack=a,host=1", "rack=b,host=2", "rack=a,host=3"});
  auto const links = [&] { return cluster.coordinator.get("/v1/links").json().at("items").as_array(); };
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  // Each call of links() asks the coordinator.
  while (links().size() < 3 && std::chrono::steady_clock::now() < deadline) continue;
  auto const measured = links();
  REQUIRE(measured.size() == 3);  // w1 to w0; w2 to w0 in its rack, and to w1
  for (auto const& link : measured) {
    CHECK(link.at("bytes_per_s").to_number<double>() > 1e6);
    CHECK(link.at("latency_s").to_number<double>() < 0.1);
  }
  // A coordinator whose workers are in one rack has only the model's defaults.
  Cluster alone(1);
  auto const predicted_s = [](Cluster& where) {
    auto const answer = where.coordinator.post(
        "/v1/plans",
        R"({"localities":["rack=a,host=1","rack=b,host=2","rack=a,host=3"],"bytes":8388608,"algorithm":"ring"})");
    return answer.json().at("predicted_seconds").to_number<double>();
  };
  CHECK(predicted_s(alone) > 0);
  CHECK(predicted_s(cluster) != predicted_s(alone));  // the difference depends on the load of the machine
  cluster.make_group("g");
  put_everywhere<float>(cluster, "x", "f32", 1000);
  expect_success(cluster.run({{"group", "g"}, {"tensor", "x"}}));
  auto const refined = cluster.run({{"group", "g"}, {"tensor", "x"}});
  CHECK(refined.at("reason").as_string().find("refined by 1 finished run:") != std::string_view::npos);
}
