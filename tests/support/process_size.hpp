// Resources of a process that may leak unnoticed, as reported by /proc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/support/process.hpp"

namespace chorus::testing {

struct ProcessSize {
  std::uint64_t resident_kib = 0;
  std::uint64_t peak_kib = 0;  // the largest resident size so far
  std::size_t descriptors = 0, threads = 0;
};

// Throws std::runtime_error if the process is gone.
[[nodiscard]] ProcessSize size_of(Process const& process);

}  // namespace chorus::testing
