// Several GPUs of one worker that reduce and broadcast tensors together.
#include "worker/devices/cuda/together.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "worker/devices/cuda/testing/team.hpp"

using namespace chorus;
using namespace chorus::devices;
using namespace chorus::devices::testing;

namespace {

constexpr std::size_t count = (1 << 18) + 77;  // not divisible by the number of slices
constexpr std::size_t size = count * sizeof(float);

}  // namespace

TEST_CASE("GPUs with peer access sum slices in place, with the bits of one GPU that sums all in their order") {
  for (std::size_t const gpus : {1u, 2u, 3u, 8u}) {
    Team team(gpus);
    REQUIRE(see_each_other(team.units));
    std::vector<Placed> sources;
    std::vector<std::byte const*> on_first;
    for (std::size_t n = 0; n < gpus + 1; ++n) {  // one GPU has two sources
      auto const bytes = random_floats(count, n);
      sources.push_back(team.put(n % gpus, bytes));
      on_first.push_back(team.put(0, bytes).data);
    }
    auto const result = team.make_room(0, size);
    REQUIRE(fold_together(team.units, ReduceOp::sum, Dtype::f32, sources, result, count).has_value());
    auto const expected = team.make_room(0, size);
    auto* const destination = expected.data;
    REQUIRE(team.units[0]
                ->fold(ReduceOp::sum, Dtype::f32, {on_first.data(), on_first.size(), &destination, 1, count})
                .has_value());
    CHECK((team.get(result, size) == team.get(expected, size)));
    // One slice of every source is summed on its own GPU; the first GPU has two sources.
    auto const first_slice = (gpus == 1 ? count : count / gpus / 256 * 256) * sizeof(float);
    CHECK(team.peer_bytes() == gpus * size - first_slice);
  }
}

TEST_CASE("every dtype's slices end between elements, also for averages and f16") {
  Team team(3);
  REQUIRE(see_each_other(team.units));
  for (auto const dtype : {Dtype::f16, Dtype::i8, Dtype::f64}) {
    auto const elements = 100'003;
    auto const bytes = elements * element_bytes(dtype);
    Bytes const ones(bytes, std::byte{1});
    std::vector<Placed> const sources{team.put(0, ones), team.put(1, ones), team.put(2, ones)};
    auto const result = team.make_room(0, bytes);
    REQUIRE(fold_together(team.units, ReduceOp::max, dtype, sources, result, elements).has_value());
    CHECK((team.get(result, bytes) == ones));
  }
}

TEST_CASE("a large tensor is broadcast in slices that the GPUs pass on, and a small one as a whole") {
  Team team(4);
  REQUIRE(see_each_other(team.units));
  for (std::size_t const bytes : {size, std::size_t{1000}}) {
    Bytes value = random_floats(count, 7);
    value.resize(bytes);
    auto const from = team.put(1, value);
    std::vector<Placed> to;
    for (std::size_t const n : {0u, 1u, 2u, 3u, 2u}) to.push_back(team.make_room(n, bytes));
    REQUIRE(spread_together(from, to, bytes).has_value());
    for (auto const& place : to) CHECK((team.get(place, bytes) == value));
  }
}

TEST_CASE("GPUs without peer access have no access to each other, and a GPU has access to itself") {
  Team team(2, false);
  CHECK_FALSE(see_each_other(team.units));
  CHECK(see_each_other({team.units.data(), 1}));
}

TEST_CASE("if one GPU fails, its error is returned, and no work is under way on the others") {
  for (auto const how : {GpuErrc::failed, GpuErrc::lost}) {
    Team team(3);
    REQUIRE(see_each_other(team.units));
    std::vector<Placed> const sources{team.put(0, random_floats(count, 1)), team.put(1, random_floats(count, 2)),
                                      team.put(2, random_floats(count, 3))};
    auto const result = team.make_room(0, size);
    team.gpus[1]->fail_after(0, how);
    auto const folded = fold_together(team.units, ReduceOp::sum, Dtype::f32, sources, result, count);
    REQUIRE(folded.has_error());
    CHECK(folded.error().detail.find("cuda:1") != std::string::npos);
    CHECK(team.units[1]->lost().has_value() == (how == GpuErrc::lost));
    CHECK(!team.units[0]->lost());
    auto const before = team.get(result, size);
    CHECK(fold_together({team.units.data(), 1}, ReduceOp::max, Dtype::f32, {sources.data(), 1}, team.make_room(0, size),
                        count)
              .has_value());
    CHECK((team.get(result, size) == before));
  }
}
