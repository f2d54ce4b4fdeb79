// What can be wrong with shared memory.
#pragma once

#include <system_error>

namespace chorus::memory {

enum class MemoryErrc {
  unavailable = 1,  // the system does not give it; the detail is what it said
  not_shared,       // the other process's memory is not to be found here: another host, or a container of its own
  damaged,          // what is found there cannot be: truncated, another size, another layout
  bad_key,          // not the name of a shared memory object of a client
  out_of_range,     // not within the object
};

[[nodiscard]] std::error_category const& memory_category();
[[nodiscard]] inline std::error_code make_error_code(MemoryErrc e) { return {static_cast<int>(e), memory_category()}; }

}  // namespace chorus::memory

template <>
struct std::is_error_code_enum<chorus::memory::MemoryErrc> : std::true_type {};
