#include "worker/memory/private_copy.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "worker/memory/errc.hpp"

namespace chorus::memory {

Status put_private_copy(std::span<std::byte> pages) {
  auto const failed = [] {
    return Error(MemoryErrc::unavailable, "withdraw shared memory: " + std::string(std::strerror(errno)));
  };
  auto* const copy = mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return failed();
  std::memcpy(copy, pages.data(), pages.size());
  if (mremap(copy, pages.size(), pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) != MAP_FAILED) return ok();
  auto error = failed();
  munmap(copy, pages.size());
  return error;
}

}  // namespace chorus::memory
