#include "worker/memory/pages/private_copy.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/page.hpp"

namespace chorus::memory {

Status put_private_copy(std::span<std::byte const> bytes) {
  auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  auto const from = begin / page_bytes * page_bytes;
  auto const to = (begin + bytes.size() + page_bytes - 1) / page_bytes * page_bytes;
  std::span const pages(reinterpret_cast<std::byte*>(from), to - from);
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
