#include "worker/engine/program/partials.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/program/addresses.hpp"

using namespace chorus;
using namespace chorus::engine;

namespace {

constexpr std::size_t half_bytes = 2;

// An all_reduce of so many halves, as a rank of it runs it.
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

TEST_CASE("a sum that fits lies as it is, and nobody waits for anybody") {
  Sums const sums("centralized", 1000, {});
  CHECK(sums.partials.memory_bytes() == 4000);
  CHECK(sums.partials.flow_limits().empty());
  CHECK(sums.partials.place(0, 20).offset == 40);
  CHECK(sums.partials.place(0, 20).bytes == 1980);
}

TEST_CASE("a longer one goes round in a ring, and who begins it waits for who ends it") {
  Sums const sums("centralized", 1000, {.memory_bytes = 600});  // 128 elements, and some
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

TEST_CASE("several sums share the memory, in rings that are not too short") {
  auto const several = [](PartialsLimit limit) { return Sums("recursive_doubling", 100'000, limit, 8, 7).partials; };
  auto const count = several({.memory_bytes = 0}).flow_limits().size();
  REQUIRE(count > 1);
  CHECK(several({.memory_bytes = 1 << 16}).memory_bytes() <= 1 << 16);
  auto const short_of_memory = several({.memory_bytes = 1 << 10, .shortest_bytes = 4096});
  CHECK(short_of_memory.flow_limits().size() == count);
  for (auto const& flow_limit : short_of_memory.flow_limits()) CHECK(flow_limit.bytes == 4096);
}

TEST_CASE("sums of nothing take nothing") {
  Sums const sums("centralized", 0, {});
  CHECK(sums.partials.memory_bytes() == 0);
  CHECK(sums.partials.flow_limits().empty());
}
