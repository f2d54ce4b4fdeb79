// Allocation of GPU memory and pinned memory, and sharing with other processes.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"

using namespace chorus;
using namespace chorus::devices;
using testing::GpuDouble;

TEST_CASE("an arena never gives out memory twice, and refuses with the sizes") {
  GpuDouble gpu;
  auto const arena = GpuArena::reserve(gpu, 1 << 20).value();
  auto first = arena->acquire(1000).value();
  auto const second = arena->acquire(600 << 10).value();
  CHECK(first->bytes().data() + 1024 <= second->bytes().data());
  auto const refused = arena->acquire(600 << 10);
  CHECK(refused.error().code == GpuErrc::out_of_memory);
  CHECK(refused.error().detail == "cuda:0: 614400 bytes asked for, 615424 of the arena's 1048576 in use");
  CHECK(arena->acquire(std::uint64_t{1} << 62).has_error());
  first.reset();
  CHECK(arena->used_bytes() == 614400);
  CHECK(arena->acquire(1000).value()->bytes().data() == arena->bytes().data());
}

TEST_CASE("pinned memory has a bound") {
  GpuDouble gpu;
  PinnedPool pool(gpu, 2 << 20);
  auto const first = pool.take().value();
  { auto const second = pool.take().value(); }
  auto const third = pool.take().value();
  auto const refused = pool.take();
  CHECK(refused.error().code == GpuErrc::out_of_memory);
  CHECK(pool.pinned_bytes() == 2 << 20);
}

TEST_CASE("adjacent slots are found between others, and single slots are taken where they break no row") {
  GpuDouble gpu;
  PinnedPool pool(gpu, 9 << 20);
  auto const begin_of = [](PinnedSlot const& slot) { return slot.bytes().data(); };
  std::optional<PinnedSlot> row(pool.take(PinnedUse::run, 4).value());
  CHECK(row->bytes().size() == 4 << 20);
  auto* const begin = begin_of(*row);
  auto const pair = pool.take(PinnedUse::run, 2).value();
  row.reset();
  std::optional<PinnedSlot> single(pool.take().value());
  CHECK(begin_of(*single) == begin);
  CHECK(begin_of(pool.take(PinnedUse::run, 3).value()) == begin + PinnedPool::slot_bytes);
  CHECK(pool.pinned_bytes() == 6 << 20);
  auto const refused = pool.take(PinnedUse::run, 4);
  CHECK(refused.error().detail == "of 9 slots of 1 MiB of pinned memory for cuda:0 no 4 in a row are free");
  single.reset();
  CHECK(begin_of(pool.take(PinnedUse::run, 4).value()) == begin);
  auto const other_pair = pool.take(PinnedUse::run, 2).value();
  CHECK(begin_of(other_pair) == begin);
  CHECK(begin_of(pool.take().value()) == begin + 2 * PinnedPool::slot_bytes);
}

TEST_CASE("transfers get at most half of the pinned memory, and runs may have all of it") {
  GpuDouble gpu;
  PinnedPool pool(gpu, 5 << 20);
  std::vector<PinnedSlot> transfers, runs;
  for (int n = 0; n < 3; ++n) transfers.push_back(pool.take(PinnedUse::transfer).value());
  auto const refused = pool.take(PinnedUse::transfer);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == GpuErrc::out_of_memory);
  CHECK(refused.error().detail ==
        "all 3 slots of 1 MiB of pinned memory for cuda:0 that transfers may have are in use");
  for (int n = 0; n < 2; ++n) runs.push_back(pool.take().value());
  CHECK(pool.take().has_error());
  transfers.pop_back();
  runs.push_back(pool.take().value());
  CHECK(pool.take(PinnedUse::transfer).has_error());
  runs.pop_back();
  CHECK(pool.take(PinnedUse::transfer).has_value());
}

TEST_CASE("memory that one process shares is mapped by another one, and a handle's size is checked") {
  GpuDouble gpu(0), neighbour(0);
  auto const arena = GpuArena::reserve(gpu, 1 << 20).value();
  auto const handle = gpu.share(arena->bytes().data()).value();
  CHECK(neighbour.open(handle, 2 << 20).error().code == GpuErrc::bad_handle);
  CHECK(neighbour.open(IpcHandle{}, 1).error().code == GpuErrc::bad_handle);
  auto* const mapped = neighbour.open(handle, 1 << 20).value();
  gpu.behind(arena->bytes()).front() = std::byte{42};
  CHECK(neighbour.behind({mapped, 1}).front() == std::byte{42});
  neighbour.close(mapped);
}

TEST_CASE("a handle of memory that was freed is refused") {
  GpuDouble gpu(0), neighbour(0);
  auto* const memory = gpu.allocate(4096).value();
  auto const handle = gpu.share(memory).value();
  gpu.free(memory);
  CHECK(neighbour.open(handle, 4096).error().code == GpuErrc::bad_handle);
}
