// Replaces shared pages by private ones.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/core/result.hpp"

namespace chorus::memory {

// Replaces all pages that contain these bytes by private pages with the same contents, all at once or not at all.
// Errors: MemoryErrc::unavailable.
[[nodiscard]] Status put_private_copy(std::span<std::byte const> bytes);

}  // namespace chorus::memory
