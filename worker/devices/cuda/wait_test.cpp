// Threads that wait for a device.
#include <doctest/doctest.h>
#include <time.h>

#include <array>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/devices/cuda/testing/team.hpp"

using namespace chorus;
using namespace chorus::devices;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::GpuDouble;

namespace {

std::chrono::nanoseconds computed_by_this_thread() {
  timespec used{};
  REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

TEST_CASE("a thread that waits for a hanging device uses little processor time, and goes on with the device") {
  auto owned = std::make_unique<GpuDouble>();
  auto& gpu = *owned;
  GpuUnit unit(std::move(owned), {.arena_bytes = 1 << 20});
  auto const memory = unit.acquire(64).value();
  auto const session = unit.session().value();
  GpuCopy const within{memory->bytes().data(), memory->bytes().data() + 32, 32};
  gpu.hang();
  REQUIRE(session->copy(Lane::compute, within.to, within.from, within.bytes).has_value());
  auto const mark = session->mark(Lane::compute).value();
  auto const before = computed_by_this_thread();
  auto const patience = 500ms;
  CHECK_FALSE(wait_for(*session, mark, steady_clock::now() + patience).value());
  CHECK(computed_by_this_thread() - before < patience / 4);
  gpu.go_on();
  CHECK(wait_for(*session, mark, steady_clock::now() + 30s).value());
}

TEST_CASE("work on a GPU that hangs ends with the GPU lost, and nobody waits for what is left of it") {
  using Work = std::function<Status(GpuUnit & unit, std::span<std::byte> memory)>;
  std::array<std::byte, 64> host{};
  Work const all[] = {
      [&](GpuUnit& unit, std::span<std::byte> memory) { return unit.upload(memory.data(), host); },
      [&](GpuUnit& unit, std::span<std::byte> memory) { return unit.download(host, memory.data()); },
      [](GpuUnit& unit, std::span<std::byte> memory) {
        GpuCopy const within{memory.data(), memory.data() + 32, 32};
        return unit.copy({&within, 1});
      },
      [](GpuUnit& unit, std::span<std::byte> memory) {
        std::byte const* const from = memory.data();
        auto* const to = memory.data() + 32;
        return unit.fold(ReduceOp::sum, Dtype::f32, {&from, 1, &to, 1, 8, false});
      },
  };
  for (auto const& work : all) {
    auto owned = std::make_unique<GpuDouble>();
    auto& gpu = *owned;
    GpuUnit unit(std::move(owned), {.arena_bytes = 1 << 20, .pinned_bytes = 2 << 20, .patience = 20ms});
    auto const memory = unit.acquire(64).value();
    gpu.hang();
    auto const why = work(unit, memory->bytes()).error();
    CHECK(why.code == GpuErrc::lost);
    CHECK(why.detail == "cuda:0: a copy took longer than 20 ms");
    CHECK(unit.lost() == why.detail);
    CHECK(work(unit, memory->bytes()).error().code == GpuErrc::lost);
    CHECK_FALSE(unit.rests());
    gpu.go_on();
    while (!unit.rests()) {}
    auto const first = unit.pinned().take(), second = unit.pinned().take();
    CHECK(first.has_value());
    CHECK(second.has_value());
  }
}

TEST_CASE("pinned memory that a hanging GPU may still write belongs to nobody else") {
  auto owned = std::make_unique<GpuDouble>();
  auto& gpu = *owned;
  GpuUnit unit(std::move(owned), {.arena_bytes = 1 << 20, .pinned_bytes = 2 << 20, .patience = 20ms});
  auto const memory = unit.acquire(64).value();
  gpu.hang();
  std::array<std::byte, 64> host{};
  REQUIRE(unit.download(host, memory->bytes().data()).has_error());
  CHECK(unit.pinned().take().error().code == GpuErrc::out_of_memory);
  gpu.go_on();
  while (!unit.pinned().take().has_value()) {}
}

TEST_CASE("GPUs that hang at common work are lost, and the caller goes on") {
  testing::Team team(2, true, {.arena_bytes = 1 << 20, .patience = 20ms});
  REQUIRE(see_each_other(team.units));
  std::vector<Placed> const sources{team.make_room(0, 4096), team.make_room(1, 4096)};
  auto const result = team.make_room(0, 4096);
  for (auto* const gpu : team.gpus) gpu->hang();
  auto const why = fold_together(team.units, ReduceOp::sum, Dtype::f32, sources, result, 1024).error();
  CHECK(why.detail == "cuda:0: a part of common work took longer than 20 ms");
  for (auto const* const unit : team.units) CHECK(unit->lost().has_value());
  for (auto* const gpu : team.gpus) gpu->go_on();
  for (auto* const unit : team.units)
    while (!unit->rests()) {}
}

TEST_CASE("a worker with a GPU that hangs can end") {
  FoundGpus found;
  found.gpus.push_back(std::make_unique<GpuDouble>());
  auto& gpu = dynamic_cast<GpuDouble&>(*found.gpus.front());
  {
    Gpus gpus(std::move(found), {.arena_bytes = 1 << 20, .patience = 20ms});
    auto const memory = gpus[0].acquire(64).value();
    gpu.hang();
    GpuCopy const within{memory->bytes().data(), memory->bytes().data() + 32, 32};
    REQUIRE(gpus[0].copy({&within, 1}).error().code == GpuErrc::lost);
  }
  CHECK(gpu.operations() == 0);
}

TEST_CASE("while NCCL hangs and holds the GPUs still, no call waits for ever, and later ones go on") {
  auto owned = std::make_unique<GpuDouble>();
  auto& gpu = *owned;
  gpu.wait_for_still(20ms);
  GpuUnit unit(std::move(owned), {.arena_bytes = 1 << 20});
  auto* const memory = gpu.allocate(4096).value();
  auto const handle = gpu.share(memory).value();
  auto const errors = [&] {
    std::vector<std::optional<Error>> all;
    auto const add = [&all](auto const& result) {
      all.push_back(result.has_error() ? std::optional(result.error()) : std::nullopt);
    };
    add(gpu.reach(gpu.info().uuid));
    add(gpu.share(memory));
    auto const opened = gpu.open(handle, 4096);
    add(opened);
    if (opened) gpu.close(*opened);
    add(gpu.free_bytes());
    add(gpu.session());
    add(unit.lend(7));
    return all;
  };
  std::latch held(1), enough(1);
  std::jthread nccl([&] {
    auto const still = gpu.hold_still();
    CHECK(still.owns_lock());
    held.count_down();
    enough.wait();
  });
  held.wait();
  for (auto const& error : errors()) {
    REQUIRE(error);
    CHECK(error->code == GpuErrc::failed);
    CHECK(error->detail == "cuda:0: the double is held still");
  }
  CHECK(!unit.lost());
  enough.count_down();
  nccl.join();
  for (auto const& error : errors()) CHECK(!error);
}
