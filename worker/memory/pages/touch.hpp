// First touch of memory, and its return. The system zeroes memory at the first touch, which is most of its cost.
//
// Both work in small pieces, because the system holds a lock of the whole process meanwhile.
#pragma once

#include <cstddef>
#include <span>

namespace chorus::memory {

// Touches private memory, in huge pages where possible. Contents stay. Advice only: on older kernels, and if there is
// no memory, the first access does it.
void touch_all(std::span<std::byte> bytes);
// Touches memory without asking for huge pages.
void touch_pages(std::span<std::byte> bytes);
// Discards the contents of the whole pages within these bytes, and frees the process's private memory there.
void forget_pages(std::span<std::byte> bytes);

}  // namespace chorus::memory
