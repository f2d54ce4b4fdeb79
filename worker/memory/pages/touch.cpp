#include "worker/memory/pages/touch.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "worker/memory/pages/page.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14; older kernels refuse it, which does no harm
#endif

namespace chorus::memory {

namespace {

constexpr std::uintptr_t piece_bytes = 2u << 20;

}  // namespace

void touch_pages(std::span<std::byte> bytes) {
  auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  auto const from = begin / page_bytes * page_bytes, to = rounded_up(begin + bytes.size(), page_bytes);
  // In pieces: a thread that maps memory meanwhile waits for one piece only.
  for (auto at = from; at < to; at += piece_bytes)
    madvise(reinterpret_cast<void*>(at), std::min(piece_bytes, to - at), MADV_POPULATE_WRITE);
}

void touch_all(std::span<std::byte> bytes) {
  auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  auto const from = rounded_up(begin, page_bytes), to = (begin + bytes.size()) / page_bytes * page_bytes;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
  touch_pages(bytes);
}

void forget_pages(std::span<std::byte> bytes) {
  auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  auto const from = rounded_up(begin, page_bytes), to = (begin + bytes.size()) / page_bytes * page_bytes;
  for (auto at = from; at < to; at += piece_bytes)
    madvise(reinterpret_cast<void*>(at), std::min(piece_bytes, to - at), MADV_DONTNEED);
}

}  // namespace chorus::memory
