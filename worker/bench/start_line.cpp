#include "worker/bench/start_line.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace chorus::bench {

struct StartLine::Shared {
  pthread_barrier_t barrier;
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
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  auto const failed = pthread_barrier_init(&line->shared_->barrier, &attributes, ranks);
  pthread_barrierattr_destroy(&attributes);
  if (failed != 0) return Error(std::error_code(failed, std::generic_category()), "pthread_barrier_init");
  return line;
}

Result<StartLine> StartLine::open(int descriptor) { return map(descriptor); }

StartLine::~StartLine() {
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  if (descriptor_ >= 0) close(descriptor_);
}

StartLine::StartLine(StartLine&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), shared_(std::exchange(other.shared_, nullptr)) {}

void StartLine::wait() { pthread_barrier_wait(&shared_->barrier); }

}  // namespace chorus::bench
