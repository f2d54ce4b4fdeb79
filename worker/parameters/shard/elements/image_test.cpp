// A shard that begins with the image of a shard with another optimizer, which a checkpoint may have.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "worker/parameters/shard/testing/assignment.hpp"
#include "worker/parameters/shard/testing/pushed_shard.hpp"

namespace chorus::parameters {
namespace {

using testing::apply;
using testing::gradient;
using testing::make;
using testing::plain;
using testing::rows;
using testing::values;

// Goes on with the content of `shard` under another optimizer.
std::unique_ptr<Shard> continued(Shard& shard, api::ShardAssignment const& assignment) {
  auto next = make(assignment);
  auto image = shard.image();
  REQUIRE(image.has_value());
  std::vector<std::string> present;
  for (auto const& array : image->arrays) {
    auto const place = next->place_for(array.name, array.content.bytes.size());
    REQUIRE(place.size() == array.content.bytes.size());
    if (!place.empty()) std::memcpy(place.data(), array.content.bytes.data(), place.size());
    present.push_back(array.name);
  }
  REQUIRE(next->begin_arrays_without(present, image->state));
  REQUIRE(next->settle().has_value());
  REQUIRE(next->restore(image->state));
  return next;
}

constexpr std::uint16_t one = 0x3f80, half = 0x3f00;  // of bf16

}  // namespace

TEST_CASE(
    "values of bf16 that had no master copy are where the next optimizer's steps begin, also those of lazy rows") {
  for (bool const is_lazy : {false, true}) {
    CAPTURE(is_lazy);
    auto assignment = plain({2, 1});
    assignment.parameter.dtype = "bf16";
    if (is_lazy) assignment.parameter.lazy_rows = 2;
    auto const shard = make(assignment);
    auto push = rows("a", 0, {0, 1}, {1, 1});
    push.dtype = Dtype::f32;
    CHECK(apply(*shard, push));
    assignment.parameter.optimizer.name = "sgd";
    assignment.parameter.optimizer.learning_rate = 1;
    auto const next = continued(*shard, assignment);
    push = rows("a", 1, {1}, {0.5});
    CHECK(apply(*next, push));
    std::array<std::uint16_t, 2> found{};
    std::memcpy(found.data(), next->values()->data(), sizeof found);
    CHECK(found == std::array{one, half});
  }
}

TEST_CASE("an optimizer whose moments begin anew counts its steps from 0, so that the first step has its usual size") {
  auto assignment = plain({2});
  auto const shard = make(assignment);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(apply(*shard, gradient("a", i, {1, -1})));
  assignment.parameter.optimizer.name = "adam";
  assignment.parameter.optimizer.learning_rate = 1;
  auto const next = continued(*shard, assignment);
  CHECK(next->version() == 100);
  CHECK(apply(*next, gradient("a", 100, {8, -8})));
  CHECK(values(*next)[0] == doctest::Approx(99));
  CHECK(values(*next)[1] == doctest::Approx(-99));
}

}  // namespace chorus::parameters
