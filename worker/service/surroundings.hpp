// What a worker takes from the process and machine that it finds itself in.
#pragma once

#include <cstdint>
#include <string>

namespace chorus::service {

[[nodiscard]] std::string host_name();
[[nodiscard]] std::uint64_t draw_incarnation();
// Three quarters of the machine's memory.
[[nodiscard]] std::uint64_t default_memory_limit();

}  // namespace chorus::service
