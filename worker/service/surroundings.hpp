// Defaults that a worker takes from its process and machine.
#pragma once

#include <cstdint>
#include <string>

namespace chorus::service {

[[nodiscard]] std::string host_name();
[[nodiscard]] std::uint64_t draw_incarnation();

// Limit for tensors and results on a machine with this much memory; the rest is for links, requests and the program.
[[nodiscard]] std::uint64_t default_memory_limit(std::uint64_t memory_bytes);

}  // namespace chorus::service
