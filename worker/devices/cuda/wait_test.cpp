// Threads that wait for a device.
#include <doctest/doctest.h>
#include <time.h>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"

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
