#include "worker/engine/shared_wait.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "worker/memory/far_fence.hpp"

namespace chorus::engine {
namespace {

// Only for what nobody rings for: deadlines, and peers that died.
constexpr long nap_nanoseconds = 5'000'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

bool SharedWait::pause() {
  ++idle_;
  if (idle_ <= spins_) {
    // The peer may have been put on this same processor, idle others or not.
    if (idle_ % burst == 0)
      sched_yield();
    else
      relax();
    return idle_ % looks_every == 0;
  }
  if (idle_ <= spins_ + yields) {
    sched_yield();
    return idle_ % (looks_every / 8) == 0;
  }
  if (!is_lying_) {
    // The caller looks once more before it sleeps: what comes after this is rung for.
    is_lying_ = true;
    bell_ = head_.bell.load(std::memory_order_acquire);
    head_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    memory::far_fence();
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
