// Launches that the coordinator refuses before a byte moves, and its answers.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::testing;
using chorus::testing::mentions;
namespace json = boost::json;

namespace {

struct Refusal {
  int status;
  std::string code;
};

// Posts a launch; a refusal at admission is the status of the answer, not a record.
Answer launch(Cluster& cluster, json::object request, std::string const& query = "?wait=30s") {
  return cluster.coordinator.post("/v1/collectives" + query, json::serialize(request));
}

// Launches until the coordinator no longer asks the ranks: two launches ask, the third does not.
void grow_used_to_it(Cluster& cluster) {
  for (int i = 0; i < 3; ++i) REQUIRE(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
}

template <class T>
void put_everywhere(Cluster& cluster, std::string const& dtype, std::size_t count) {
  for (std::size_t i = 0; i < cluster.size(); ++i)
    REQUIRE(cluster.worker(i).put_tensor("x", dtype, std::vector<T>(count, 1)).status / 100 == 2);
}

template <class T>
void expect_everywhere(Cluster& cluster, std::vector<T> const& expected) {
  for (std::size_t i = 0; i < cluster.size(); ++i) CHECK(cluster.worker(i).get_tensor<T>("x") == expected);
}

double times_asked(Cluster& cluster) {
  auto const name = R"(chorus_http_request_duration_seconds_count{code_class="2xx",method="HEAD")";
  double sum = 0;
  for (std::size_t i = 0; i < cluster.size(); ++i) sum += std::max(cluster.worker(i).metric(name), 0.0);
  return sum;
}

}  // namespace

TEST_CASE("a tensor of another shape or dtype, or a missing one, is refused with rank, field and both values") {
  Cluster cluster(3);
  auto const ranks = cluster.make_group("g");
  for (std::size_t i = 0; i < 3; ++i) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(10, 1));
  auto& odd = cluster.at_rank("g", 2);

  odd.put_tensor("x", "f32", std::vector<float>(11, 1));
  auto shape = launch(cluster, {{"group", "g"}, {"tensor", "x"}});
  INFO(shape.body);
  CHECK(mentions(shape.body, "\"mismatch\""));
  CHECK(mentions(shape.body, "shape"));
  CHECK(mentions(shape.body, "10"));
  CHECK(mentions(shape.body, "11"));
  CHECK(mentions(shape.body, "\"ranks\":[2]"));

  odd.put_tensor("x", "i32", std::vector<std::int32_t>(10, 1));
  auto dtype = launch(cluster, {{"group", "g"}, {"tensor", "x"}});
  CHECK(mentions(dtype.body, "\"mismatch\""));
  CHECK(mentions(dtype.body, "f32"));
  CHECK(mentions(dtype.body, "i32"));

  odd.erase("/v1/tensors/x");
  auto missing = launch(cluster, {{"group", "g"}, {"tensor", "x"}});
  CHECK(mentions(missing.body, "unknown_tensor"));
  CHECK(mentions(missing.body, "\"ranks\":[2]"));
  CHECK(cluster.at_rank("g", 0).get_tensor<float>("x") == std::vector<float>(10, 1));
}

TEST_CASE("a launch that repeats earlier ones asks no worker for its tensor") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere<float>(cluster, "f32", 10);
  auto const before = times_asked(cluster);
  grow_used_to_it(cluster);
  CHECK(times_asked(cluster) == before + 6);
  for (int i = 0; i < 5; ++i) CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
  expect_everywhere(cluster, std::vector<float>(10, 6561));
  for (int i = 0; i < 2; ++i)
    CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}, {"op", "reduce"}}).at("state") == "succeeded");
  CHECK(cluster.at_rank("g", 0).get_tensor<float>("x") == std::vector<float>(10, 6561 * 5));
  CHECK(times_asked(cluster) == before + 6);
  launch(cluster, {{"group", "g"}, {"tensor", "x"}}, "?validate_only=true");
  CHECK(times_asked(cluster) == before + 9);
}

TEST_CASE("a tensor that one rank has changed between launches is refused as at the first launch") {
  Cluster cluster(3);
  cluster.make_group("g");
  auto& odd = cluster.at_rank("g", 2);
  auto& other = cluster.at_rank("g", 0);
  auto const refused = [&](int status, std::string const& code, std::string const& detail) {
    auto const version = other.tensor_version("x");
    auto const values = other.get("/v1/tensors/x").body;
    auto const answer = launch(cluster, {{"group", "g"}, {"tensor", "x"}});
    INFO(answer.body);
    CHECK(answer.status == status);
    CHECK(answer.code() == code);
    CHECK(mentions(answer.body, "\"ranks\":[2]"));
    CHECK(mentions(answer.body, detail));
    CHECK(other.tensor_version("x") == version);
    CHECK(other.get("/v1/tensors/x").body == values);
  };

  put_everywhere<float>(cluster, "f32", 10);
  grow_used_to_it(cluster);
  odd.put_tensor("x", "f32", std::vector<float>(11, 1));
  refused(409, "mismatch", "shape of rank 2 ('" + odd.id + "') is 11, that of rank 0 ('" + other.id + "') is 10");

  put_everywhere<float>(cluster, "f32", 10);
  grow_used_to_it(cluster);
  odd.put_tensor("x", "i32", std::vector<std::int32_t>(10, 1));
  refused(409, "mismatch", "dtype of rank 2 ('" + odd.id + "') is i32, that of rank 0 ('" + other.id + "') is f32");

  put_everywhere<float>(cluster, "f32", 10);
  grow_used_to_it(cluster);
  odd.erase("/v1/tensors/x");
  refused(404, "unknown_tensor", "rank 2 ('" + odd.id + "') has no tensor 'x'");
}

TEST_CASE("tensors that one rank or all ranks have changed between launches are reduced with their new values") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere<float>(cluster, "f32", 10);
  grow_used_to_it(cluster);
  put_everywhere<std::int32_t>(cluster, "i32", 1009);
  auto const record = cluster.run({{"group", "g"}, {"tensor", "x"}});
  CHECK(record.at("state") == "succeeded");
  CHECK(record.at("dtype") == "i32");
  CHECK(record.at("attempts").as_array().empty());
  expect_everywhere(cluster, std::vector<std::int32_t>(1009, 3));

  grow_used_to_it(cluster);
  REQUIRE(cluster.worker(1).put_tensor("x", "i32", std::vector<std::int32_t>(1009, 19)).status / 100 == 2);
  CHECK(cluster.run({{"group", "g"}, {"tensor", "x"}}).at("state") == "succeeded");
  expect_everywhere(cluster, std::vector<std::int32_t>(1009, 81 + 19 + 81));
}

TEST_CASE("invalid requests are refused with the wrong field") {
  Cluster cluster(2);
  cluster.make_group("g");
  for (std::size_t i = 0; i < 2; ++i) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(4, 1));
  auto const refused = [&](json::object request, int status, std::string const& part) {
    auto const answer = launch(cluster, request);
    INFO(answer.body);
    CHECK(answer.status == status);
    CHECK(answer.header("Content-Type") == "application/problem+json");
    CHECK(mentions(answer.body, part));
  };
  refused({{"group", "nobody"}, {"tensor", "x"}}, 404, "unknown_group");
  refused({{"group", "g"}, {"tensor", "x"}, {"op", "all_redcue"}}, 422, "/op");
  refused({{"group", "g"}, {"tensor", "x"}, {"op", "all_redcue"}}, 422, "did you mean 'all_reduce'?");
  refused({{"group", "g"}, {"tensor", "x"}, {"reduce", "mean"}}, 422, "/reduce");
  refused({{"group", "g"}, {"tensor", "x"}, {"reduce", "summ"}}, 422, "did you mean 'sum'?");
  refused({{"group", "g"}, {"tensor", "x"}, {"algorithm", "rign"}}, 422, "/algorithm");
  refused({{"group", "g"}, {"tensor", "x"}, {"algorithm", "rign"}}, 422, "did you mean 'ring'?");
  refused({{"group", "g"}, {"tensor", "x"}, {"local_algorithm", "chian"}}, 422, "did you mean 'chain'?");
  refused({{"group", "g"}, {"tensor", "x"}, {"root", 2}, {"algorithm", "tree"}}, 422, "/root");
  refused({{"group", "g"}, {"tensor", "x"}, {"arity", 0}, {"algorithm", "tree"}}, 422, "/arity");
  refused({{"group", "g"}, {"tensor", "x"}, {"epoch", 7}}, 409, "epoch_fenced");
  refused({{"group", "g"}, {"tensor", "x"}, {"tesnor", "y"}}, 422, "/tesnor");
  refused({{"group", "g"}}, 422, "/tensor");
  refused({{"group", "g"}, {"tensor", "x"}, {"timeout_ms", -1}}, 422, "/timeout_ms");
  refused({{"group", "g"}, {"tensor", "x"}, {"schedule", {{"segment_bytes", 1}}}}, 422, "/schedule/segment_bytes");
}

TEST_CASE("validate_only plans and explains without running") {
  Cluster cluster(4);
  cluster.make_group("g");
  for (std::size_t i = 0; i < 4; ++i) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(1000, 1));
  auto const answer = launch(cluster, {{"group", "g"}, {"tensor", "x"}}, "?validate_only=true");
  CHECK(answer.status == 200);
  auto const plan = answer.json();
  CHECK(plan.at("state") == "planned");
  CHECK(plan.at("considered").as_array().size() >= 3);
  CHECK(cluster.worker(0).tensor_version("x") == 1);
}

TEST_CASE("a request with a known Idempotency-Key gets the first answer, and is refused with another body") {
  Cluster cluster(2);
  cluster.make_group("g");
  for (std::size_t i = 0; i < 2; ++i) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(4, 1));
  auto const body = R"({"group":"g","tensor":"x"})";
  auto const first = cluster.coordinator.post("/v1/collectives?wait=30s", body, {{"Idempotency-Key", "k1"}});
  auto const again = cluster.coordinator.post("/v1/collectives?wait=30s", body, {{"Idempotency-Key", "k1"}});
  CHECK(first.json().at("id") == again.json().at("id"));
  CHECK(cluster.worker(0).tensor_version("x") == 2);
  auto const other =
      cluster.coordinator.post("/v1/collectives", R"({"group":"g","tensor":"y"})", {{"Idempotency-Key", "k1"}});
  CHECK(other.status == 422);
  CHECK(other.code() == "idempotency_reused");
}

TEST_CASE("a collective named by its client is created once, and can be read and listed") {
  Cluster cluster(2);
  cluster.make_group("g");
  for (std::size_t i = 0; i < 2; ++i) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(4, 1));
  auto const created = cluster.coordinator.put("/v1/collectives/mine?wait=30s", R"({"group":"g","tensor":"x"})");
  CHECK(created.status / 100 == 2);
  CHECK(cluster.coordinator.get("/v1/collectives/mine").json().at("state") == "succeeded");
  CHECK(cluster.coordinator.get("/v1/collectives").json().at("items").as_array().size() == 1);
  CHECK(cluster.coordinator.get("/v1/collectives/other").code() == "unknown_collective");
}
