// Which host this is, for those who share memory on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus::links {

// The same for all processes of a host, in whatever container, and for no other host: the first half of what Linux drew
// when it booted. Nothing where the file cannot be read or has something else in it.
[[nodiscard]] std::optional<std::uint64_t> host_number(std::string_view file = "/proc/sys/kernel/random/boot_id");

}  // namespace chorus::links
