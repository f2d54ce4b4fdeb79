#include "worker/engine/program/partials.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/program/addresses.hpp"

using namespace chorus;
using namespace chorus::engine;

namespace {

constexpr std::size_t half_bytes = 2;

// Partial sums of one rank in an all_reduce of `elements` elements of f16.
struct Sums {
  Sums(std::string const& algorithm, std::uint64_t elements, PartialsLimit limit, std::uint32_t ranks = 3,
       plan::Rank rank = 0)
      : program(
            plan::build(*algorithms::find(algorithm).value(), {.algorithm = algorithm, .ranks = ranks}, rank).value()),
        partials(program, Addresses(program, {elements, {}, {}}, half_bytes).total_bytes(), Dtype::f16, limit) {}

  plan::Program program;
  Partials partials;
};

}  // namespace

TEST_CASE("a partial sum that fits into the memory has no flow limit") {
  Sums const sums("centralized", 1000, {});
  CHECK(sums.partials.memory_bytes() == 4000);
  CHECK(sums.partials.flow_limits().empty());
  CHECK(sums.partials.place(0, 20).offset == 40);
  CHECK(sums.partials.place(0, 20).bytes == 1980);
}

TEST_CASE("a partial sum longer than its ring has a flow limit between its first and its last instruction") {
  Sums const sums("centralized", 1000, {.memory_bytes = 600});  // room for 128 elements and a rest
  CHECK(sums.partials.memory_bytes() == 512);
  REQUIRE(sums.partials.flow_limits().size() == 1);
  auto const& flow_limit = sums.partials.flow_limits().front();
  CHECK(sums.program.instructions[flow_limit.ahead].peer == 1);
  CHECK(sums.program.instructions[flow_limit.behind].peer == 2);
  CHECK(flow_limit.bytes == 256);
  CHECK(sums.partials.place(flow_limit.ahead, 254).offset == 508);
  CHECK(sums.partials.place(flow_limit.ahead, 254).bytes == 2);
  CHECK(sums.partials.place(flow_limit.behind, 256).offset == 0);
  CHECK(sums.partials.place(flow_limit.behind, 256).bytes == 256);
}

TEST_CASE("several partial sums share the memory, and no ring is shorter than the limit") {
  auto const several = [](PartialsLimit limit) { return Sums("grouped_allpairs", 200'000, limit, 8, 7).partials; };
  auto const count = several({.memory_bytes = 0}).flow_limits().size();
  REQUIRE(count > 1);
  CHECK(several({.memory_bytes = 1 << 16}).memory_bytes() <= 1 << 16);
  auto const short_of_memory = several({.memory_bytes = 1 << 10, .shortest_bytes = 4096});
  CHECK(short_of_memory.flow_limits().size() == count);
  for (auto const& flow_limit : short_of_memory.flow_limits()) CHECK(flow_limit.bytes == 4096);
}

TEST_CASE("partial sums without elements take no memory") {
  Sums const sums("centralized", 0, {});
  CHECK(sums.partials.memory_bytes() == 0);
  CHECK(sums.partials.flow_limits().empty());
}
