// What a worker takes from the process and machine that it finds itself in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace chorus::service {

[[nodiscard]] std::string host_name();
[[nodiscard]] std::uint64_t draw_incarnation();

// What the control group of this process may use, of either version of the kernel's interface; nothing where there is
// no limit. `root` is where control groups are mounted: containers see their own there.
[[nodiscard]] std::optional<std::uint64_t> control_group_limit(std::filesystem::path const& root);

// Three quarters of the machine's memory, or of what the container may use of it.
[[nodiscard]] std::uint64_t default_memory_limit();

}  // namespace chorus::service
