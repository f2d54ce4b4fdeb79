#include "worker/memory/pages/bus_guard.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/guarded_range.hpp"
#include "worker/memory/pages/page.hpp"

namespace chorus::memory {
namespace {

struct Slot {
  GuardedRange range;
  std::atomic<bool> broken{false};
  std::atomic<bool> taken{false};
  std::atomic<std::size_t> whole{BusGuard::ranges_max};  // the slot of `whole`, if any
};

// Global state, as an exception: a signal has one handler per process, and the handler gets no pointer to its data.
std::array<Slot, BusGuard::ranges_max> slots;
constexpr Slot* first_slot = slots.data();  // for the handler, which must not call functions of std::array
struct sigaction before_us;

// The most that one fault replaces. A system without overcommit (vm.overcommit_memory=2) counts the whole mapping, read
// or not. It may refuse a mapping as large as a region, or lack this memory elsewhere.
constexpr std::uintptr_t replaced_bytes = 2u << 20;

// Replaces these pages by zeros, or leaves them as they are. mmap() with MAP_FIXED would leave no mapping at all if the
// system refused the new one; mremap() does not.
CHORUS_NOT_INSTRUMENTED bool replace(std::uintptr_t from, std::uintptr_t bytes) {
  auto const zeros =
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros == -1) return false;
  if (syscall(SYS_mremap, zeros, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) != -1) return true;
  syscall(SYS_munmap, zeros, bytes);
  return false;
}

// Returns true if the address can be read now.
CHORUS_NOT_INSTRUMENTED bool replace_what_is_missing(std::uintptr_t at) {
  auto const errno_before = errno;
  for (auto *slot = first_slot, *const last = slot + BusGuard::ranges_max; slot != last; ++slot) {
    std::uintptr_t begin = 0, end = 0;
    if (!slot->range.read(begin, end) || at < begin || at >= end) continue;
    __atomic_store_n(unseen(slot->broken), true, __ATOMIC_RELEASE);
    if (auto const whole = __atomic_load_n(unseen(slot->whole), __ATOMIC_ACQUIRE); whole != BusGuard::ranges_max)
      __atomic_store_n(unseen((first_slot + whole)->broken), true, __ATOMIC_RELEASE);
    auto const from = at / page_bytes * page_bytes;
    auto const to = (from / replaced_bytes + 1) * replaced_bytes;
    if (replace(from, (to < end ? to : end) - from) || replace(from, page_bytes)) {
      errno = errno_before;
      return true;
    }
  }
  errno = errno_before;
  return false;
}

CHORUS_NOT_INSTRUMENTED void on_bus_error(int signal, siginfo_t* info, void* context) {
  bool const is_sent = info->si_code <= 0;  // sent by a process, so no instruction repeats it
  if (!is_sent && replace_what_is_missing(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  bool const is_function = before_us.sa_handler != SIG_DFL && before_us.sa_handler != SIG_IGN;
  if (is_function && (before_us.sa_flags & SA_RESETHAND) == 0) {
    if ((before_us.sa_flags & SA_SIGINFO) != 0)
      before_us.sa_sigaction(signal, info, context);
    else
      before_us.sa_handler(signal);
    return;
  }
  if (is_sent && before_us.sa_handler == SIG_IGN) return;
  // The former action takes over for good: a fault repeats when this returns, and a sent signal is sent again.
  sigaction(SIGBUS, &before_us, nullptr);
  if (is_sent) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  CHORUS_ASSERT(sigaction(SIGBUS, &action, &before_us) == 0, "SIGBUS can be handled");
}

}  // namespace

Result<BusGuard> BusGuard::over(std::span<std::byte> range, BusGuard const* whole) {
  static std::once_flag installed;
  std::call_once(installed, install);
  std::size_t free = 0;
  while (free < ranges_max && slots[free].taken.exchange(true)) ++free;
  if (free == ranges_max)
    return Error(MemoryErrc::unavailable, std::to_string(ranges_max) + " regions are mapped already");
  auto& slot = slots[free];
  auto const begin = reinterpret_cast<std::uintptr_t>(range.data());
  slot.broken = false;
  slot.whole = whole != nullptr ? whole->slot_ : ranges_max;
  slot.range.set(begin, begin + range.size());
  return BusGuard(free);
}

BusGuard::BusGuard(std::size_t slot) : slot_(slot), broken_(&slots[slot].broken) {}

BusGuard::BusGuard(BusGuard&& other) noexcept : slot_(other.slot_), broken_(std::exchange(other.broken_, nullptr)) {}

BusGuard::~BusGuard() {
  if (broken_ == nullptr) return;
  auto& slot = slots[slot_];
  slot.range.clear();
  slot.taken = false;
}

bool BusGuard::is_whole(int descriptor, std::uint64_t end_bytes) const {
  struct stat file {};
  return !is_broken() && fstat(descriptor, &file) == 0 && static_cast<std::uint64_t>(file.st_size) >= end_bytes;
}

}  // namespace chorus::memory
