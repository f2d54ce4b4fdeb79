// Assertions for programmer errors. They end the process in release builds, too: a wrong sum is worse than a stopped
// worker. Errors that can happen, such as bad input or a lost peer, are values: see result.hpp.
#pragma once

namespace chorus {

[[noreturn]] void assertion_failed(char const* condition, char const* why, char const* file, int line) noexcept;

}  // namespace chorus

#define CHORUS_ASSERT(condition, why) \
  (static_cast<bool>(condition) ? void(0) : ::chorus::assertion_failed(#condition, why, __FILE__, __LINE__))
