#include "worker/memory/bus_guard.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "collectives/core/assert.hpp"
#include "worker/memory/page.hpp"

namespace chorus::memory {
namespace {

struct Slot {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // both 0: free
  std::atomic<bool> broken{false};
  std::atomic<bool> taken{false};
};

// A signal has one handler per process, and the handler has no argument to find its data by: the one place where state
// of the process is what is meant.
constexpr std::size_t slots_count = 4096;
std::array<Slot, slots_count> slots;
constexpr Slot* first_slot = slots.data();  // for the handler, which calls nothing
struct sigaction before_us;

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

// True: whatever was to be read there can be read now.
CHORUS_NOT_INSTRUMENTED bool replace_what_is_missing(std::uintptr_t at) {
  auto const errno_before = errno;
  for (auto *slot = first_slot, *const last = slot + slots_count; slot != last; ++slot) {
    auto const end = __atomic_load_n(unseen(slot->end), __ATOMIC_ACQUIRE);
    auto const begin = __atomic_load_n(unseen(slot->begin), __ATOMIC_ACQUIRE);
    if (at < begin || at >= end) continue;
    __atomic_store_n(unseen(slot->broken), true, __ATOMIC_RELEASE);
    auto const from = at / page_bytes * page_bytes;
    auto const mapped = syscall(SYS_mmap, from, end - from, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (mapped != -1) return true;
  }
  errno = errno_before;
  return false;
}

CHORUS_NOT_INSTRUMENTED void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (replace_what_is_missing(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  if ((before_us.sa_flags & SA_SIGINFO) != 0 && before_us.sa_sigaction != nullptr)
    before_us.sa_sigaction(signal, info, context);
  else
    sigaction(SIGBUS, &before_us, nullptr);  // the fault repeats, and is theirs
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  CHORUS_ASSERT(sigaction(SIGBUS, &action, &before_us) == 0, "SIGBUS can be handled");
}

}  // namespace

BusGuard::BusGuard(std::span<std::byte> range) : slot_(0), broken_(nullptr) {
  static std::once_flag installed;
  std::call_once(installed, install);
  for (; slot_ < slots.size(); ++slot_)
    if (!slots[slot_].taken.exchange(true)) break;
  CHORUS_ASSERT(slot_ < slots.size(), "so many regions are never mapped");
  auto const begin = reinterpret_cast<std::uintptr_t>(range.data());
  slots[slot_].broken = false;
  slots[slot_].begin = begin;  // while the end is 0 nothing lies between
  slots[slot_].end = begin + range.size();
  broken_ = &slots[slot_].broken;
}

BusGuard::~BusGuard() {
  auto& slot = slots[slot_];
  slot.end = 0;
  slot.begin = 0;
  slot.taken = false;
}

}  // namespace chorus::memory
