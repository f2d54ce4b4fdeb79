#include "worker/tensors/private_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "worker/memory/pages/touch.hpp"

namespace chorus::tensors {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;

}  // namespace

std::size_t capacity_of(std::size_t size_bytes) {
  auto const unit = size_bytes >= page ? page : cache_line;
  return size_bytes == 0 ? unit : (size_bytes + unit - 1) / unit * unit;
}

// Large blocks are mapped, because malloc would keep some of them when they are freed. Each begins at a huge page of
// its own, so that no other block shares its huge pages.
std::byte* allocate_private(std::size_t capacity) {
  if (capacity < huge_page)
    return static_cast<std::byte*>(std::aligned_alloc(capacity >= page ? page : cache_line, capacity));
  auto const room = capacity + huge_page;
  auto* const mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  auto const skipped = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  if (skipped != 0) munmap(begin, skipped);
  munmap(begin + skipped + capacity, room - skipped - capacity);
  // Advice only: without huge pages the block is a little slower.
  madvise(begin + skipped, capacity / huge_page * huge_page, MADV_HUGEPAGE);
  return begin + skipped;
}

void free_private(std::byte* data, std::size_t capacity) {
  if (capacity < huge_page) return std::free(data);
  memory::forget_pages({data, capacity});
  munmap(data, capacity);
}

}  // namespace chorus::tensors
