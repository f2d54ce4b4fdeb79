// Averages whose sums do not fit their dtype, of tensors on GPUs.
#include <doctest/doctest.h>

#include <limits>

#include "worker/service/testing/doubles.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service;
using namespace chorus::service::testing;

namespace {

template <class T>
void put_on_device(LiveWorker& worker, std::string const& name, std::string const& dtype, std::string const& device,
                   T value, std::size_t count) {
  std::vector<T> const values(count, value);
  std::string const bytes(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T));
  auto const answer =
      worker.put("/v1/tensors/" + name, bytes,
                 {{"Tensor-Dtype", dtype}, {"Tensor-Shape", std::to_string(count)}, {"Tensor-Device", device}},
                 "application/octet-stream");
  REQUIRE_MESSAGE(answer.status / 100 == 2, answer.body);
}

// Ranks on one GPU, on another, and in host memory.
template <class T>
void check_average(std::string const& dtype, T value, bool several, std::size_t ranks = 3) {
  LiveGroup group(
      ranks, [](WorkerOptions& options) { options.gpu_limits.arena_bytes = 12 << 20; },
      [](std::size_t) { return std::move(make_doubles(2).found); });
  group.assign(1);
  std::vector<std::string> const devices{"cuda:0", "cuda:1", "cpu", "cuda:1", "cpu"};
  auto const names = several ? std::vector<char const*>{"x/0", "x/1"} : std::vector<char const*>{"x"};
  for (auto const* algorithm : {"ring", "mesh", "tree"}) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (auto const* name : names) put_on_device(group.at(rank), name, dtype, devices[rank], value, 3000);
    auto const body = R"({"tensor":"x","reduce":"avg","algorithm":")" + std::string(algorithm) + "\"}";
    for (auto const& answer : group.all_reduce(body)) CHECK_MESSAGE(answer.status == 200, dtype, body, answer.body);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      INFO(dtype, " ", algorithm, " ", rank);
      auto const* const name = several ? "x/1" : "x";
      CHECK((group.at(rank).template get_tensor<T>(name) == std::vector<T>(3000, value)));
      CHECK(group.at(rank).head("/v1/tensors/" + std::string(name)).header("Tensor-Device") == devices[rank]);
    }
  }
}

}  // namespace

TEST_CASE("numbers at their limits, on GPUs and beside them, are their average") {
  check_average<std::uint16_t>("f16", 0x7b53, false);
  check_average<std::uint16_t>("bf16", 0x7f62, false);
  check_average<std::uint8_t>("u8", 200, false);
  check_average<float>("f32", 0x1.8p127F, false);
  check_average<std::int64_t>("i64", std::numeric_limits<std::int64_t>::max(), false);
}

TEST_CASE("five equal f32 or f64, on GPUs and beside them, are their average") {
  check_average<float>("f32", 0.1F, false, 5);
  check_average<double>("f64", 0.1, false, 5);
}

TEST_CASE("so are several tensors of a name on a GPU") {
  check_average<std::uint16_t>("f16", 0x7b53, true);
  check_average<std::uint16_t>("bf16", 0x7f62, true);
  check_average<std::int8_t>("i8", 127, true);
  check_average<float>("f32", 0x1.8p127F, true);
  check_average<double>("f64", -0x1.8p1023, true);
}
