// The collective suite over memory of GPUs, and of GPUs and hosts together: the results have the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/cases/suite.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

enum class Which : std::uint8_t { all, odd };

Doubles doubles(std::uint32_t ranks, Which which, devices::GpuLimits limits = {.arena_bytes = 64 << 20}) {
  Doubles all(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    if (which == Which::all || rank % 2 == 1) all[rank] = std::make_shared<Double>(rank % 8, limits, rank + 1);
  return all;
}

template <Which which>
std::unique_ptr<Fleet> over_loopback(std::uint32_t ranks) {
  FleetOptions options;
  options.ranks = ranks;
  options.eager_bytes = ranks % 2 == 0 ? 1024 : 65536;
  options.partials_bytes = 0;  // for the ranks on hosts
  options.gpus = doubles(ranks, which);
  return std::make_unique<LoopbackFleet>(std::move(options));
}

template <Which which>
std::unique_ptr<Fleet> over_tcp(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, DataPlaneOptions{.partials_bytes = 0}, Arenas(), Tensors::elsewhere,
                                    doubles(ranks, which));
}

template <Which which>
std::unique_ptr<Fleet> over_shm(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, DataPlaneOptions{.partials_bytes = 0}, make_arenas(ranks),
                                    Tensors::in_arenas, doubles(ranks, which));
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t elements, std::uint64_t run = 1) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.run = run;
  return c;
}

}  // namespace

TEST_CASE("on GPUs, every algorithm is exact for every group, count, segment size, operation and dtype") {
  check_every_shape(over_loopback<Which::all>, Depth::few);
}

TEST_CASE("in groups of GPUs and hosts, every algorithm is exact for every operation and dtype") {
  check_every_shape(over_loopback<Which::odd>, Depth::few);
}

TEST_CASE("on GPUs, runs follow each other, are under way together, and wait for late ranks") {
  for (auto const& make : {over_loopback<Which::all>, over_loopback<Which::odd>}) {
    check_hundred_in_a_row(make);
    check_several_at_once(make);
    check_late_starters(make);
  }
}

TEST_CASE("on GPUs, over TCP and through shared memory, a hundred runs in a row are exact, and several at once") {
  check_hundred_in_a_row(over_tcp<Which::all>);
  check_several_at_once(over_tcp<Which::odd>);
  check_hundred_in_a_row(over_shm<Which::odd>);
  check_several_at_once(over_shm<Which::all>);
}

TEST_CASE("on GPUs, every run of a kind is made anew") {
  FleetOptions options;
  options.gpus = doubles(2, Which::all);
  LoopbackFleet fleet(std::move(options));
  Collective memory(fleet, case_of(algorithms::ring, 1000), fleet.now());
  std::array<std::shared_ptr<RunKind>, 2> kinds;
  for (plan::Rank rank = 0; rank < 2; ++rank) kinds[rank] = std::make_shared<RunKind>(memory.spec(rank));
  std::atomic<std::size_t> ended{0};
  for (std::uint64_t run = 1; run <= 3; ++run) {
    for (plan::Rank rank = 0; rank < 2; ++rank) {
      auto call = Kinds::call_of(memory.spec(rank));
      call.run = run;
      fleet.engine(rank).start(kinds[rank], call, [&ended](RunResult const& r) { ended += r.status.has_value(); });
    }
    REQUIRE(fleet.run_until(ended, 2 * run));
  }
}

TEST_CASE("on GPUs, a vector that is much larger than the blocks it goes through") {
  for (auto const& make : {over_tcp<Which::all>, over_shm<Which::odd>}) {
    auto const fleet = make(3);
    std::uint64_t run = 0;
    for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
      auto c = case_of(*algorithm, 1000011, ++run);
      c.in_place = run % 2 == 0;
      c.segment_bytes = run % 3 == 0 ? 5u << 20 : 100'000;
      Collective collective(*fleet, c);
      REQUIRE(collective.run());
      auto const wrong = collective.wrong();
      CHECK_MESSAGE(wrong.empty(), wrong);
    }
  }
}

TEST_CASE("the first bytes of a message leave a GPU again before its last ones have come") {
  auto const fleet = over_loopback<Which::all>(3);
  auto c = case_of(algorithms::tree, 100'000);
  c.op = Op::reduce;
  c.arity = 1;
  c.segment_bytes = 4096;
  Collective collective(*fleet, c);
  REQUIRE(collective.run());
  bool is_pipelined = false;
  for (plan::Rank rank = 0; rank < 3; ++rank) {
    auto const& spans = collective.result(rank).trace->gpu_spans;
    auto const is_in = [](auto const& span) { return span.lane == devices::Lane::in; };
    auto const is_out = [](auto const& span) { return span.lane == devices::Lane::out; };
    auto const first_out = std::find_if(spans.begin(), spans.end(), is_out);
    is_pipelined |= std::any_of(spans.begin(), first_out, is_in) && std::any_of(first_out, spans.end(), is_in);
  }
  CHECK(is_pipelined);
}
