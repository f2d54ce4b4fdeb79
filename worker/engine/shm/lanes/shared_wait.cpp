#include "worker/engine/shm/lanes/shared_wait.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "worker/memory/pages/membarrier_fence.hpp"

namespace chorus::engine {
namespace {

// Bounds the delay of events without a ring: deadlines, and peers that died.
constexpr long nap_nanoseconds = 5'000'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void SharedWait::was_away(std::chrono::nanoseconds yield) {
  if (yield < crowded_from) return;
  is_crowded_ = true;
  idle_ = std::max(idle_, spins_ + yields);
}

void SharedWait::give_way() {
  auto const left = std::chrono::steady_clock::now();
  sched_yield();
  was_away(std::chrono::steady_clock::now() - left);
}

bool SharedWait::pause(Look look) {
  auto const before = idle_;
  idle_ += static_cast<std::uint32_t>(idle_ < spins_ ? look : Look::at_all);
  auto const has_passed_a_multiple_of = [&](std::uint32_t many) { return before / many != idle_ / many; };
  if (idle_ <= spins_) {
    // The peer may be scheduled on this processor, even if others are idle.
    if (!has_passed_a_multiple_of(burst))
      relax();
    else if (is_crowded_)
      idle_ = spins_ + yields;
    else
      give_way();
    return has_passed_a_multiple_of(looks_every);
  }
  if (idle_ <= spins_ + yields && !is_crowded_) {
    give_way();
    return has_passed_a_multiple_of(looks_every / 8);
  }
  if (!is_lying_) {
    // The caller looks once more before it sleeps; events after that look are rung.
    is_lying_ = true;
    bell_ = head_.bell.load(std::memory_order_acquire);
    head_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    memory::membarrier_fence();
    return true;
  }
  timespec const nap{0, nap_nanoseconds};
  syscall(SYS_futex, &head_.bell, FUTEX_WAIT, bell_, &nap, nullptr, 0);
  stand_up();
  return true;
}

void SharedWait::stand_up() {
  if (!is_lying_) return;
  is_lying_ = false;
  head_.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace chorus::engine
