// Identifies this host, so that two workers can tell if they can share memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace chorus::links {

// Returns a number that is the same for all processes of a host, also in containers, and differs between hosts: the
// first half of Linux's random boot id. Nothing if the file cannot be read or has another format.
[[nodiscard]] std::optional<std::uint64_t> host_number(std::string_view file = "/proc/sys/kernel/random/boot_id");

}  // namespace chorus::links
