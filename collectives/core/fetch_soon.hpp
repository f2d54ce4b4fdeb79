// Memory that will be written soon, and was not for long: asked for now, it is there when it is needed.
#pragma once

#include <cstddef>

namespace chorus {

// Never waits, and never fails, whatever is there. Always inlined: GCC 12 takes a function that only prefetches for one
// without effect, and leaves out its calls.
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
