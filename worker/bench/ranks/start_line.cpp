#include "worker/bench/ranks/start_line.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <thread>
#include <utility>

namespace chorus::bench {

namespace {

constexpr int spins = 20000;
constexpr std::size_t line_bytes = 64;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Waiting ranks read `starts` only, so that arriving ranks do not take its cache line from them.
struct StartLine::Shared {
  alignas(line_bytes) std::atomic<std::uint32_t> arrived{0};
  alignas(line_bytes) std::atomic<std::uint32_t> starts{0};
  alignas(line_bytes) std::uint32_t ranks = 0;
  bool shares_cores = false;
};

Result<StartLine> StartLine::map(int descriptor) {
  auto* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    Error error(std::error_code(errno, std::generic_category()), "mmap");
    close(descriptor);
    return error;
  }
  return StartLine(descriptor, static_cast<Shared*>(memory));
}

Result<StartLine> StartLine::make(std::uint32_t ranks) {
  auto const descriptor = memfd_create("chorus-bench", MFD_CLOEXEC);
  if (descriptor < 0) return Error(std::error_code(errno, std::generic_category()), "memfd_create");
  if (ftruncate(descriptor, sizeof(Shared)) != 0) {
    close(descriptor);
    return Error(std::error_code(errno, std::generic_category()), "ftruncate");
  }
  auto line = map(descriptor);
  if (line.has_error()) return line.error();
  auto& shared = *new (line->shared_) Shared;
  shared.ranks = ranks;
  shared.shares_cores = ranks > std::thread::hardware_concurrency();
  return line;
}

Result<StartLine> StartLine::open(int descriptor) { return map(descriptor); }

StartLine::~StartLine() {
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  if (descriptor_ >= 0) close(descriptor_);
}

StartLine::StartLine(StartLine&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), shared_(std::exchange(other.shared_, nullptr)) {}

std::uint32_t StartLine::ranks() const { return shared_->ranks; }

void StartLine::wait() {
  auto const start = shared_->starts.load(std::memory_order_acquire);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == shared_->ranks) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    shared_->starts.store(start + 1, std::memory_order_release);
    return;
  }
  int turns = shared_->shares_cores ? spins : 0;
  while (shared_->starts.load(std::memory_order_acquire) == start) {
    if (++turns > spins)
      sched_yield();
    else
      relax();
  }
}

}  // namespace chorus::bench
