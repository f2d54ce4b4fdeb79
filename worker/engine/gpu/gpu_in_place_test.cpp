// Ranks on one host whose GPUs read each other's memory in place: the same bits, and no copies elsewhere.
#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/cases/suite.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

// all: one GPU for all ranks. mixed: in turn the host, a GPU, and a GPU that maps nothing. neighbours: GPUs of which
// only every other one has peer access to the next.
enum class Which : std::uint8_t { all, mixed, neighbours };

std::string uuid_of(Double const& gpu) { return gpu.gpu.info().uuid; }

Doubles doubles(std::uint32_t ranks, Which which) {
  Doubles all(ranks);
  devices::GpuLimits const limits{.arena_bytes = 64 << 20};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (which == Which::mixed && rank % 3 == 0) continue;
    all[rank] = std::make_shared<Double>(which == Which::neighbours ? rank % 8 : 0, limits, rank + 1);
    if (which == Which::mixed && rank % 3 == 2) all[rank]->gpu.open_nothing("another container");
    if (which == Which::neighbours && rank % 2 == 1) all[rank]->gpu.neighbour(uuid_of(*all[rank - 1]));
  }
  return all;
}

template <Which which>
std::unique_ptr<Fleet> over_loopback(std::uint32_t ranks) {
  FleetOptions options;
  options.ranks = ranks;
  options.eager_bytes = ranks % 2 == 0 ? 1024 : 65536;
  options.gpus = doubles(ranks, which);
  options.lends_gpu_memory = true;
  return std::make_unique<LoopbackFleet>(std::move(options));
}

DataPlaneOptions lending() {
  DataPlaneOptions options;
  options.lending_host = 1;
  return options;
}

template <Which which>
std::unique_ptr<Fleet> over_tcp(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, lending(), Arenas(), Tensors::elsewhere, doubles(ranks, which));
}

template <Which which>
std::unique_ptr<Fleet> over_shm(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, lending(), make_arenas(ranks), Tensors::in_arenas, doubles(ranks, which));
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t elements, std::uint64_t run = 1) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.run = run;
  return c;
}

void check_right(Collective& collective) {
  REQUIRE(collective.run());
  auto const wrong = collective.wrong();
  CHECK_MESSAGE(wrong.empty(), wrong);
}

}  // namespace

TEST_CASE("in place, every algorithm is exact for every group, count, segment size, operation and dtype") {
  check_every_shape(over_loopback<Which::all>, Depth::few);
}

TEST_CASE("where some read in place and others cannot, every algorithm is exact for every operation and dtype") {
  check_every_shape(over_loopback<Which::mixed>, Depth::few);
}

TEST_CASE("in place, runs follow each other, are under way together, and wait for late ranks") {
  for (auto const& make : {over_loopback<Which::all>, over_loopback<Which::mixed>, over_loopback<Which::neighbours>}) {
    check_hundred_in_a_row(make);
    check_several_at_once(make);
    check_late_starters(make);
  }
}

TEST_CASE("in place, over TCP and through shared memory, a hundred runs in a row are exact, and several at once") {
  for (auto const& make : {over_tcp<Which::all>, over_tcp<Which::mixed>, over_shm<Which::all>}) {
    check_hundred_in_a_row(make);
    check_several_at_once(make);
  }
}

TEST_CASE("in place, a vector that is much larger than what is shown at once") {
  for (auto const& make : {over_tcp<Which::all>, over_shm<Which::mixed>}) {
    auto const fleet = make(3);
    std::uint64_t run = 0;
    for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
      auto c = case_of(*algorithm, 1000011, ++run);
      c.in_place = run % 2 == 0;
      c.segment_bytes = run % 3 == 0 ? 5u << 20 : 10'000;
      Collective collective(*fleet, c);
      check_right(collective);
    }
  }
}

TEST_CASE("on one GPU the reducing rank writes the results of all, in the same pass if it knows the room by then") {
  auto const fleet = over_loopback<Which::all>(4);
  std::size_t alone = 0, together = 0;
  for (std::uint64_t run = 1; run <= 50; ++run) {
    Collective collective(*fleet, case_of(algorithms::centralized, 4096, run));
    check_right(collective);
    for (plan::Rank rank = 1; rank < 4; ++rank) CHECK(collective.result(rank).trace->gpu_spans.empty());
    auto const& root = *collective.result(0).trace;
    CHECK(root.gpu.peer_bytes == 6 * 4096 * sizeof(float));
    alone += root.gpu_spans.size() == 6;  // three reductions and three copies
    together += root.gpu_spans.size() < 6;
  }
  CHECK(alone + together == 50);
  CHECK(together > 0);
}

TEST_CASE("in place, no byte of a tensor goes through the host or over the links") {
  auto const gpus = doubles(4, Which::all);
  TcpFleet fleet(4, lending(), Arenas(), Tensors::elsewhere, gpus);
  std::uint64_t run = 0;
  for (auto const op : all_ops)
    for (auto const* algorithm : algorithms::all_for(op)) {
      auto c = case_of(*algorithm, op == Op::barrier ? 4 : 4096, ++run);
      c.op = op;
      if (op == Op::barrier) c.dtype = Dtype::i32;
      Collective collective(fleet, c);
      check_right(collective);
      // A GPU reads in place what it reduces; data that is only passed on is written by the sender's GPU.
      std::uint64_t moved = 0, received = 0;
      for (plan::Rank rank = 0; rank < 4; ++rank) {
        auto const& result = collective.result(rank);
        CHECK(result.trace->gpu.in_bytes == 0);
        CHECK(result.trace->gpu.out_bytes == 0);
        moved += result.trace->gpu.peer_bytes;
        received += result.statistics.bytes_received;
      }
      CHECK(moved == received);
    }
  for (plan::Rank rank = 0; rank < 4; ++rank) {
    // One slot, for the 8 bytes of a proof.
    CHECK(gpus[rank]->unit.totals().pinned_bytes == devices::PinnedPool::slot_bytes);
    CHECK(gpus[rank]->unit.totals().use.peer_bytes != 0);
    CHECK(gpus[rank]->gpu.opened() == 3);
    for (auto const& traffic : fleet.plane(rank).traffic()) {
      CHECK(traffic.sent_bytes == 0);
      CHECK(traffic.received_bytes == 0);
      CHECK(traffic.why_not_ipc.empty());
    }
  }
}

TEST_CASE("where memory is not read in place, both ends know why, and are told once") {
  auto gpus = doubles(2, Which::all);
  gpus[1]->gpu.open_nothing("cudaErrorInvalidResourceHandle");
  std::vector<std::string> told;
  std::mutex mutex;
  auto options = lending();
  options.on_link_without_ipc = [&](std::string const& worker, std::string const& why) {
    std::scoped_lock const lock(mutex);
    told.push_back(worker + ": " + why);
  };
  TcpFleet fleet(2, options, Arenas(), Tensors::elsewhere, gpus);
  for (std::uint64_t run = 1; run <= 3; ++run) {
    Collective collective(fleet, case_of(algorithms::ring, 5000, run));
    check_right(collective);
    CHECK(collective.result(0).trace->gpu.peer_bytes != 0);  // the memory that rank 1 lends
    CHECK(collective.result(1).trace->gpu.peer_bytes == 0);
    CHECK(collective.result(0).trace->gpu.out_bytes != 0);
    CHECK(collective.result(1).trace->gpu.out_bytes == 0);
  }
  std::sort(told.begin(), told.end());
  CHECK(told == std::vector<std::string>{"w0: cuda:0: cudaErrorInvalidResourceHandle",
                                         "w1: cuda:0: cudaErrorInvalidResourceHandle"});
  CHECK(fleet.plane(0).traffic().front().why_not_ipc == "cuda:0: cudaErrorInvalidResourceHandle");
}

TEST_CASE("a worker whose system has no handles lends nothing, and says so") {
  auto gpus = doubles(2, Which::all);
  gpus[0]->gpu.share_nothing();
  TcpFleet fleet(2, lending(), Arenas(), Tensors::elsewhere, gpus);
  Collective collective(fleet, case_of(algorithms::ring, 5000));
  check_right(collective);
  CHECK(collective.result(0).trace->gpu.peer_bytes != 0);
  CHECK(collective.result(1).trace->gpu.peer_bytes == 0);
  CHECK(fleet.plane(0).traffic().front().why_not_ipc == "cuda:0: the double shares nothing");
}

TEST_CASE("memory outside the arena, such as a client's, is not lent") {
  auto const gpus = doubles(2, Which::all);
  TcpFleet fleet(2, lending(), Arenas(), Tensors::elsewhere, gpus);
  Collective collective(fleet, case_of(algorithms::ring, 5000));
  auto& gpu = gpus[0]->gpu;
  auto& spec = collective.spec(0);
  auto* const outside = gpu.allocate(spec.input.size()).value();
  std::span<std::byte const> const elsewhere(outside, spec.input.size());
  std::ranges::copy(gpu.behind(spec.input), gpu.behind(elsewhere).begin());
  spec.input = elsewhere;
  check_right(collective);
  CHECK(collective.result(0).trace->gpu.peer_bytes != 0);
  CHECK(collective.result(1).trace->gpu.peer_bytes == 0);
  CHECK(fleet.plane(0).traffic().front().why_not_ipc.empty());
  gpu.free(outside);
}

TEST_CASE("borrowed memory is returned when the owner's link ends, and is borrowed anew") {
  FleetOptions options;
  options.gpus = doubles(2, Which::all);
  options.lends_gpu_memory = true;
  auto const gpus = options.gpus;
  LoopbackFleet fleet(std::move(options));
  Collective first(fleet, case_of(algorithms::ring, 5000), fleet.now());
  check_right(first);
  CHECK(gpus[1]->gpu.opened() == 1);
  fleet.engine(1).fence("w0", 7);
  CHECK(gpus[1]->gpu.opened() == 0);
}
