#include "worker/memory/bus_guard.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "collectives/core/assert.hpp"

namespace chorus::memory {
namespace {

constexpr std::uintptr_t page_bytes = 4096;

struct Slot {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // both 0: free
  std::atomic<bool> broken{false};
  std::atomic<bool> taken{false};
};

// A signal has one handler per process, and the handler has no argument to find its data by: the one place where state
// of the process is what is meant.
std::array<Slot, 4096> slots;
struct sigaction before_us;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  auto const at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (auto& slot : slots) {
    auto const end = slot.end.load(std::memory_order_acquire);
    auto const begin = slot.begin.load(std::memory_order_acquire);
    if (at < begin || at >= end) continue;
    slot.broken.store(true, std::memory_order_release);
    auto const from = at / page_bytes * page_bytes;
    auto* const mapped = mmap(reinterpret_cast<void*>(from), end - from, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (mapped != MAP_FAILED) return;
  }
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

BusGuard::BusGuard(std::span<std::byte> range) : slot_(0) {
  static std::once_flag installed;
  std::call_once(installed, install);
  for (; slot_ < slots.size(); ++slot_)
    if (!slots[slot_].taken.exchange(true)) break;
  CHORUS_ASSERT(slot_ < slots.size(), "so many regions are never mapped");
  auto const begin = reinterpret_cast<std::uintptr_t>(range.data());
  slots[slot_].broken = false;
  slots[slot_].begin = begin;  // while the end is 0 nothing lies between
  slots[slot_].end = begin + range.size();
}

BusGuard::~BusGuard() {
  auto& slot = slots[slot_];
  slot.end = 0;
  slot.begin = 0;
  slot.taken = false;
}

bool BusGuard::is_broken() const { return slots[slot_].broken.load(std::memory_order_acquire); }

}  // namespace chorus::memory
