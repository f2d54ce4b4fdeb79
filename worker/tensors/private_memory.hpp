// Private memory of the process, for blocks outside of arenas.
#pragma once

#include <cstddef>

namespace chorus::tensors {

inline constexpr std::size_t huge_page = 2 << 20;

// Returns the memory that a block takes: whole cache lines, from a page on whole pages.
[[nodiscard]] std::size_t capacity_of(std::size_t size_bytes);

// Allocates memory; null if the system has none. Large blocks begin at the boundary of a huge page.
[[nodiscard]] std::byte* allocate_private(std::size_t capacity);
void free_private(std::byte* data, std::size_t capacity);

}  // namespace chorus::tensors
