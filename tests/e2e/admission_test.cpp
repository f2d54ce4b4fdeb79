// What the coordinator refuses before a byte moves, and what it says.
#include <doctest/doctest.h>

#include "tests/support/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

struct Refusal {
  int status;
  std::string code;
};

// POST without waiting for a refusal to be hidden in a record: admission problems come as the answer's status.
Answer launch(Cluster& cluster, json::object request, std::string const& query = "?wait=30s") {
  return cluster.coordinator.post("/v1/collectives" + query, json::serialize(request));
}

bool mentions(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a different shape, dtype or a missing tensor is refused, naming rank, field and both values") {
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

TEST_CASE("requests that cannot be are refused with the field that is wrong") {
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
  refused({{"group", "g"}, {"tensor", "x"}, {"reduce", "mean"}}, 422, "/reduce");
  refused({{"group", "g"}, {"tensor", "x"}, {"algorithm", "rign"}}, 422, "/algorithm");
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

TEST_CASE("an Idempotency-Key runs once: the same answer again, another body is refused") {
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
