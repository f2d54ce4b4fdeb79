#include "worker/memory/bus_guard.hpp"

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
#include "worker/memory/errc.hpp"
#include "worker/memory/page.hpp"

namespace chorus::memory {
namespace {

struct Slot {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // both 0: free
  std::atomic<bool> broken{false};
  std::atomic<bool> taken{false};
  std::atomic<std::size_t> whole{BusGuard::ranges_max};  // the slot that this one's memory is a part of, if any
};

// A signal has one handler per process, and the handler has no argument to find its data by: the one place where state
// of the process is what is meant.
std::array<Slot, BusGuard::ranges_max> slots;
constexpr Slot* first_slot = slots.data();  // for the handler, which calls nothing
struct sigaction before_us;

// What one fault replaces at most. A system that grants no more memory than it has (vm.overcommit_memory=2) counts all
// that is mapped here, read or not: it may refuse as much as a region has, and would lack it elsewhere.
constexpr std::uintptr_t replaced_bytes = 2u << 20;

// An access that faults may be one that ThreadSanitizer's runtime makes on behalf of an atomic, with a lock of its own
// in hand: a handler that enters the runtime, as any atomic or mmap() does, waits for itself. So neither is seen by it
// here.
#ifdef __clang__
#define CHORUS_NOT_INSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define CHORUS_NOT_INSTRUMENTED
#endif

template <class T>
CHORUS_NOT_INSTRUMENTED T* unseen(std::atomic<T>& value) {
  static_assert(sizeof(value) == sizeof(T) && std::atomic<T>::is_always_lock_free);
  return reinterpret_cast<T*>(&value);
}

// These pages become zeros, or stay as they are: to map new ones in their place directly would leave nothing at all
// there where the system refuses.
CHORUS_NOT_INSTRUMENTED bool replace(std::uintptr_t from, std::uintptr_t bytes) {
  auto const zeros =
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros == -1) return false;
  if (syscall(SYS_mremap, zeros, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) != -1) return true;
  syscall(SYS_munmap, zeros, bytes);
  return false;
}

// True: whatever was to be read there can be read now.
CHORUS_NOT_INSTRUMENTED bool replace_what_is_missing(std::uintptr_t at) {
  auto const errno_before = errno;
  for (auto *slot = first_slot, *const last = slot + BusGuard::ranges_max; slot != last; ++slot) {
    auto const end = __atomic_load_n(unseen(slot->end), __ATOMIC_ACQUIRE);
    auto const begin = __atomic_load_n(unseen(slot->begin), __ATOMIC_ACQUIRE);
    if (at < begin || at >= end) continue;
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
  bool const is_sent = info->si_code <= 0;  // by a process: nothing repeats it
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
  // Now it is theirs for good: a fault repeats when this returns, and what was sent is sent again.
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
  slot.begin = begin;  // while the end is 0 nothing lies between
  slot.end = begin + range.size();
  return BusGuard(free);
}

BusGuard::BusGuard(std::size_t slot) : slot_(slot), broken_(&slots[slot].broken) {}

BusGuard::BusGuard(BusGuard&& other) noexcept : slot_(other.slot_), broken_(std::exchange(other.broken_, nullptr)) {}

BusGuard::~BusGuard() {
  if (broken_ == nullptr) return;
  auto& slot = slots[slot_];
  slot.end = 0;
  slot.begin = 0;
  slot.taken = false;
}

bool BusGuard::is_whole(int descriptor, std::uint64_t end_bytes) const {
  struct stat file {};
  return !is_broken() && fstat(descriptor, &file) == 0 && static_cast<std::uint64_t>(file.st_size) >= end_bytes;
}

}  // namespace chorus::memory
