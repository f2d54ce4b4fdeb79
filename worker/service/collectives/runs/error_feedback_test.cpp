// Compressed calls and runs with error feedback: what arrives when, what leaves the residual alone, and its memory.
#include <doctest/doctest.h>

#include "tests/support/mentions.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using chorus::testing::mentions;
using Floats = std::vector<float>;

namespace {

// Two members with the tensor 127, 1/4: in int8 a step is 1, so the second element is 0 in the first call, 0 in the
// second, of 1/2, and 1 in the third, of 3/4.
struct TwoMembers {
  TwoMembers() {
    group.assign(1);
    for (std::size_t rank = 0; rank < 2; ++rank) put(rank, "x");
  }
  void put(std::size_t rank, std::string const& name) {
    REQUIRE(group.at(rank).put_tensor(name, "f32", Floats{127, 0.25F}).status / 100 == 2);
  }

  // Returns what rank 0 gets of the second element of rank 1.
  float gather(std::string const& more = "") {
    auto const body = R"({"tensor":"x","output":"all","compression":"int8","error_feedback":true)" + more + "}";
    for (auto const& answer : group.call("all_gather", body)) {
      INFO(answer.body);
      REQUIRE(answer.status == 200);
    }
    return group.at(0).get_tensor<float>("all").at(3);
  }
  // A launch of the sum, which is left in y.
  void run(std::uint64_t number) {
    auto const answers = group.run(number, [](api::RunRequest& request) {
      request.algorithm = "allpairs";
      request.elements = 2;
      request.compression = api::Compression{"int8", {}};
      request.error_feedback = true;
      request.result = api::RunResult{"y", {2}, std::nullopt};
    });
    for (auto const& answer : answers) {
      INFO(answer.body);
      REQUIRE(answer.json().at("state") == "succeeded");
    }
  }
  float committed(std::uint64_t number) {
    run(number);
    for (std::size_t rank = 0; rank < 2; ++rank) REQUIRE(group.commit(rank, number).status == 200);
    return group.at(0).get_tensor<float>("y").at(1);
  }
  bool has_residuals(std::size_t rank, std::string const& bytes) {
    return mentions(group.at(rank).metrics(), "\nchorus_error_feedback_bytes " + bytes + "\n");
  }

  LiveGroup group{2};
};

}  // namespace

TEST_CASE("what the codes lack is added to the next call, and metrics tell of memory and bytes") {
  TwoMembers two;
  CHECK(two.has_residuals(0, "0"));
  CHECK(two.gather() == 0);
  CHECK(two.gather() == 0);
  CHECK(two.gather() == 1);
  CHECK(two.has_residuals(0, "8"));
  auto const metrics = two.group.at(0).metrics();
  CHECK(mentions(metrics, "\nchorus_compressed_bytes_total{format=\"int8\"} 48\n"));
  CHECK(mentions(metrics, "\nchorus_compressed_wire_bytes_total{format=\"int8\"} 1536\n"));
}

TEST_CASE("a repeated call does not add twice") {
  TwoMembers two;
  CHECK(two.gather(R"(,"sequence":0)") == 0);
  CHECK(two.gather(R"(,"sequence":0)") == 0);
  CHECK(two.gather(R"(,"sequence":1)") == 0);
  CHECK(two.gather(R"(,"sequence":1)") == 0);
  CHECK(two.gather(R"(,"sequence":2)") == 1);
}

TEST_CASE("a launch whose result is dropped leaves the residual as it was; calls and launches share it") {
  TwoMembers two;
  CHECK(two.committed(1) == 0);
  two.run(2);
  for (std::size_t rank = 0; rank < 2; ++rank) REQUIRE(two.group.abort(rank, 2).status / 100 == 2);
  CHECK(two.committed(3) == 0);
  CHECK(two.gather() == 1);
}

TEST_CASE("a call that is refused, or without error feedback, leaves the residual as it was") {
  TwoMembers two;
  CHECK(two.gather() == 0);
  for (auto const& answer : two.group.call("all_gather", R"({"tensor":"x","output":"all","compression":"int8"})"))
    CHECK(answer.status == 200);
  CHECK(two.group.at(0).get_tensor<float>("all").at(3) == 0);
  CHECK(two.gather() == 0);
  CHECK(two.gather() == 1);
}

TEST_CASE("memory of residuals is given back with the tensor, with the epoch, and at another size") {
  TwoMembers two;
  two.gather();
  CHECK(two.has_residuals(0, "8"));
  CHECK(two.group.at(0).erase("/v1/tensors/x").status == 204);
  CHECK(two.has_residuals(0, "0"));
  CHECK(two.has_residuals(1, "8"));
  two.put(0, "x");
  two.gather();
  two.group.assign(2);
  CHECK(two.has_residuals(0, "0"));
  CHECK(two.has_residuals(1, "0"));
  CHECK(two.gather() == 0);
  for (std::size_t rank = 0; rank < 2; ++rank) two.group.at(rank).put_tensor("x", "f32", Floats(5, 1.0F));
  two.gather();
  CHECK(two.has_residuals(0, "20"));
}

TEST_CASE("error feedback without compression, of lists and of several tensors of a worker is refused") {
  TwoMembers two;
  for (auto const* name : {"many/0", "many/1"}) two.put(0, name);
  for (auto const* body :
       {R"({"tensor":"x","error_feedback":true})", R"({"tensors":["x"],"compression":"int8","error_feedback":true})",
        R"({"tensor":"many","compression":"int8","error_feedback":true})"}) {
    auto const answer = two.group.at(0).post("/v1/groups/g/all_reduce", body);
    INFO(answer.body);
    CHECK(answer.code() == "invalid_field");
    CHECK(mentions(answer.body, "/error_feedback"));
  }
  CHECK(two.gather() == 0);
}
