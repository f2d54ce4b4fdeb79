// Many tensors in one call, and the memory that a worker needs for its tensors during a reduction.
#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/process_size.hpp"

using namespace chorus::testing;

namespace {

constexpr std::size_t small_count = 60, large_count = 2;
constexpr std::uint64_t mib = 1 << 20, small_bytes = 3 * mib / 2, large_bytes = 24 * mib;
constexpr std::uint64_t all_bytes = small_count * small_bytes + large_count * large_bytes;

std::string name_of(std::size_t i) { return "layer" + std::to_string(i); }

std::vector<float> values(std::size_t i, float value) {
  return std::vector<float>((i < small_count ? small_bytes : large_bytes) / sizeof(float), value);
}

void put_all(Service& worker) {
  for (std::size_t i = 0; i < small_count + large_count; ++i)
    REQUIRE(worker.put_tensor(name_of(i), "f32", values(i, static_cast<float>(i))).status / 100 == 2);
}

std::string all_names() {
  std::string list = R"({"tensors":[)";
  for (std::size_t i = 0; i < small_count + large_count; ++i) list += (i == 0 ? "\"" : ",\"") + name_of(i) + '"';
  return list + "]}";
}

// Makes the call of each member at its own worker, all concurrently.
void all_reduce_on_all(Cluster& cluster, std::string const& body) {
  std::vector<Answer> answers(cluster.size());
  {
    std::vector<std::jthread> members;
    for (std::size_t member = 0; member < cluster.size(); ++member)
      members.emplace_back([&cluster, &answers, &body, member] {
        answers[member] = cluster.worker(member).post("/v1/groups/g/all_reduce", body);
      });
  }
  for (auto const& answer : answers) REQUIRE_MESSAGE(answer.status == 200, answer.body);
}

// Skips sanitizers, which use memory of their own and keep freed memory.
void check_memory(Service& worker, std::uint64_t tensor_bytes) {
  auto const peak_bytes = size_of(worker.process).peak_kib * 1024;
  CAPTURE(peak_bytes / mib);
  CHECK((under_sanitizer() || peak_bytes <= 2 * tensor_bytes + 64 * mib));
}

}  // namespace

TEST_CASE("a worker needs twice the memory of a long list of tensors and 64 MiB, whatever their sizes") {
  Cluster cluster(0);
  for (auto const* id : {"a", "b"}) cluster.add_worker(id, "host=h0", {"--shm", "off"});
  cluster.make_group("g");
  put_all(cluster.worker(0));
  put_all(cluster.worker(1));
  all_reduce_on_all(cluster, all_names());
  for (std::size_t member = 0; member < 2; ++member) {
    for (std::size_t i = 0; i < small_count + large_count; ++i)
      CHECK(cluster.worker(member).get_tensor<float>(name_of(i)) == values(i, static_cast<float>(2 * i)));
    check_memory(cluster.worker(member), all_bytes);
  }
}

namespace {

constexpr std::uint64_t half_vector_bytes = 128 * mib;

// Workers without shared memory, each with a tensor "grad" of ones in f16.
struct Halves {
  Halves() : cluster(0) {
    for (auto const* id : {"a", "b", "c"}) cluster.add_worker(id, "host=h0", {"--shm", "off"});
    cluster.make_group("g");
    std::vector<std::uint16_t> const ones(half_vector_bytes / sizeof(std::uint16_t), 0x3c00);
    for (std::size_t member = 0; member < 3; ++member)
      REQUIRE(cluster.worker(member).put_tensor("grad", "f16", ones).status / 100 == 2);
  }

  void check_memory_and_sum() {
    for (std::size_t member = 0; member < 3; ++member) check_memory(cluster.worker(member), half_vector_bytes);
    CHECK(cluster.worker(2).get_tensor<std::uint16_t>("grad").back() == 0x4ec0);  // 27
  }

  Cluster cluster;
};

}  // namespace

TEST_CASE("a worker needs twice the memory of a long f16 vector and 64 MiB, by the plan that auto takes") {
  Halves halves;
  for (int run = 0; run < 3; ++run)  // what is learned from one run must not change the plan
    REQUIRE(halves.cluster.run({{"group", "g"}, {"tensor", "grad"}}).at("state") == "succeeded");
  halves.check_memory_and_sum();
}

TEST_CASE("a worker needs twice the memory of a long f16 vector and 64 MiB, by plans with whole partial sums") {
  Halves halves;
  for (auto const* algorithm : {"mesh", "centralized", "double_tree"}) {
    boost::json::object request{{"group", "g"}, {"tensor", "grad"}, {"algorithm", algorithm}};
    if (algorithm != std::string_view("double_tree")) request["reproducible"] = true;
    REQUIRE(halves.cluster.run(request).at("state") == "succeeded");
  }
  halves.check_memory_and_sum();
}

TEST_CASE("a worker needs twice the memory of a long f16 vector and 64 MiB, in members' calls") {
  Halves halves;
  for (int call = 0; call < 3; ++call) all_reduce_on_all(halves.cluster, R"({"tensor":"grad"})");
  halves.check_memory_and_sum();
}

TEST_CASE("in a gather only the root needs memory for the result") {
  Cluster cluster(0);
  constexpr std::uint64_t block_bytes = 32 * mib;
  for (auto const* id : {"a", "b", "c", "d", "e", "f", "g", "h"}) cluster.add_worker(id, "host=h0", {"--shm", "off"});
  cluster.make_group("g");
  for (std::size_t member = 0; member < cluster.size(); ++member) {
    std::vector<float> const block(block_bytes / sizeof(float), static_cast<float>(member));
    REQUIRE(cluster.worker(member).put_tensor("block", "f32", block).status / 100 == 2);
  }
  REQUIRE(cluster.run({{"group", "g"}, {"op", "gather"}, {"tensor", "block"}}).at("state") == "succeeded");
  auto const gathered = cluster.worker(0).get_tensor<float>("block");
  REQUIRE(gathered.size() == 8 * block_bytes / sizeof(float));
  for (std::size_t rank = 0; rank < 8; ++rank) CHECK(gathered[rank * block_bytes / sizeof(float)] == rank);
  for (std::size_t member = 1; member < cluster.size(); ++member) check_memory(cluster.worker(member), block_bytes);
}
