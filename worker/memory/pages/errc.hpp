// Errors of shared memory.
#pragma once

#include <system_error>

namespace chorus::memory {

enum class MemoryErrc {
  unavailable = 1,  // the system refuses the memory; the detail is its message
  not_shared,       // the other process's memory cannot be found: another host, or another container
  damaged,          // the file was truncated, or has another size or layout
  bad_key,          // not the name of a client's shared memory object
  out_of_range,     // not within the object
  at_ceiling,       // the arena has as much memory as it may have
};

[[nodiscard]] std::error_category const& memory_category();
[[nodiscard]] inline std::error_code make_error_code(MemoryErrc e) { return {static_cast<int>(e), memory_category()}; }

}  // namespace chorus::memory

template <>
struct std::is_error_code_enum<chorus::memory::MemoryErrc> : std::true_type {};
