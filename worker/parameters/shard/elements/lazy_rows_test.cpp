// Lazy rows, which are created by the first push to them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "worker/parameters/shard/shard.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"
#include "worker/parameters/shard/testing/pushed_shard.hpp"

namespace chorus::parameters {
namespace {

using namespace testing;

api::ShardAssignment lazy(std::uint64_t most, std::string optimizer = "none") {
  auto assignment = plain({1'000'000'000'000, 2});
  assignment.parameter.lazy_rows = most;
  assignment.parameter.initializer.name = "uniform";
  assignment.parameter.initializer.seed = 7;
  assignment.parameter.optimizer.name = std::move(optimizer);
  return assignment;
}

std::vector<float> rows_at(Shard const& shard, std::vector<std::uint64_t> const& numbers) {
  std::vector<float> all(2 * numbers.size());
  shard.copy_rows(numbers, std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

TEST_CASE("a lazy row has its initial values, and takes memory only from its first push on") {
  auto const shard = make(lazy(3));
  auto const initial = rows_at(*shard, {5, 999'999'999'999});
  CHECK(initial[0] != initial[2]);
  CHECK(shard->rows() == 0);
  CHECK(shard->value_bytes() == 0);
  CHECK(apply(*shard, rows("a", 0, {5}, {1, 2})));
  CHECK(shard->rows() == 1);
  CHECK(shard->value_bytes() == 8);
  CHECK(rows_at(*shard, {5, 999'999'999'999}) ==
        std::vector<float>{initial[0] + 1, initial[1] + 2, initial[2], initial[3]});
}

TEST_CASE("no more rows are created than lazy_rows, and existing rows can still be pushed") {
  auto const shard = make(lazy(3));
  CHECK(apply(*shard, rows("a", 0, {1, 2, 2, 3}, {1, 1, 1, 1, 1, 1, 1, 1})));
  CHECK(shard->rows() == 3);
  CHECK(refusal(*shard, rows("a", 1, {3, 4}, {1, 1, 1, 1})) == http::ProblemCode::rows_exhausted);
  CHECK(apply(*shard, rows("a", 1, {1, 3}, {1, 1, 1, 1})));
  CHECK(refusal(*shard, gradient("a", 2, {1, 1})) == http::ProblemCode::unsupported);
}

TEST_CASE("lazy rows are stepped to the same bits as rows that exist from the beginning") {
  auto few = plain({100, 2});
  few.parameter.initializer.name = "normal";
  few.parameter.initializer.seed = 3;
  few.parameter.optimizer.name = "adam";
  auto const dense = make(few);
  few.parameter.lazy_rows = 100;
  auto const created = make(few);
  std::mt19937 draw(1);
  std::vector<std::uint64_t> numbers(100);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::uint64_t i = 0; i < 60; ++i) {
    std::vector<std::uint64_t> some;
    for (int k = 0; k < 4; ++k) some.push_back(draw() % 100);
    std::ranges::sort(some);
    std::vector<float> gradients(8);
    for (auto& one : gradients) one = static_cast<float>(draw() % 17) - 8;
    CHECK(apply(*dense, rows("a", i, some, gradients)));
    CHECK(apply(*created, rows("a", i, some, gradients)));
    REQUIRE(rows_at(*dense, numbers) == rows_at(*created, numbers));
  }
}

TEST_CASE("a reader's copy of lazy rows does not change, and all copies of a shard have the same bits") {
  auto const assignment = lazy(1000, "momentum");
  auto const shard = make(assignment);
  for (std::uint64_t i = 0; i < 20; ++i) {
    auto const held = i % 3 == 0 ? shard->values() : nullptr;
    CHECK(apply(*shard, rows("a", i, {900 - 7 * i, 1000 + i}, {1, 2, 3, 4})));
  }
  auto const copy = copy_of(*shard, assignment);
  std::vector<std::uint64_t> numbers(2000);
  std::iota(numbers.begin(), numbers.end(), 0);
  CHECK(copy->rows() == 40);
  CHECK(rows_at(*copy, numbers) == rows_at(*shard, numbers));
  CHECK(apply(*shard, rows("a", 20, {900, 1500}, {1, 2, 3, 4})));
  CHECK(apply(*copy, rows("a", 20, {900, 1500}, {1, 2, 3, 4})));
  CHECK(rows_at(*copy, numbers) == rows_at(*shard, numbers));
}

TEST_CASE("an image with a repeated row or a row out of range is refused") {
  auto const assignment = lazy(10);
  auto const shard = make(assignment);
  CHECK(apply(*shard, rows("a", 0, {1, 2}, {1, 1, 1, 1})));
  auto const image = shard->image().value();
  for (std::uint64_t const second : {1ULL, 1'000'000'000'000ULL}) {
    auto const copy = make(assignment);
    for (auto const& array : image.arrays) {
      auto const place = copy->place_for(array.name, array.content.bytes.size());
      REQUIRE(place.size() == array.content.bytes.size());
      std::memcpy(place.data(), array.content.bytes.data(), place.size());
      if (array.name == "rows") std::memcpy(place.data() + 8, &second, 8);
    }
    CHECK_FALSE(copy->restore(image.state));
  }
}

}  // namespace chorus::parameters
