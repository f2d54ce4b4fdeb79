// Prefetch of memory that is to be written soon and has probably left the caches.
#pragma once

#include <cstddef>

namespace chorus {

// Prefetches a range for writing. Never waits and never fails, even at invalid addresses. Always inlined: GCC 12
// regards a function that only prefetches as one without effect, and removes calls of it.
[[gnu::always_inline]] inline void fetch_soon(void const* memory, std::size_t size_bytes) {
  constexpr std::size_t line_bytes = 64;
  auto const* const bytes = static_cast<std::byte const*>(memory);
  for (std::size_t at = 0; at < size_bytes; at += line_bytes) __builtin_prefetch(bytes + at, 1);
}

template <class Value>
[[gnu::always_inline]] inline void fetch_soon(Value const& value) {
  fetch_soon(&value, sizeof(value));
}

}  // namespace chorus
