// Taking pages out of what others share.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/core/result.hpp"

namespace chorus::memory {

// In place of the pages that these bytes have a part in appear pages of the process's own with the same contents, all
// at once or not at all. Errors: MemoryErrc::unavailable.
[[nodiscard]] Status put_private_copy(std::span<std::byte const> bytes);

}  // namespace chorus::memory
