// How much memory this process may use: the machine's memory, or less if a control group limits it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace chorus::http {

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string source;  // the file with the limit, or "the machine"
};

// Returns the least limit of the process's control groups and their visible parents; nothing if none has a limit.
// Version 2: memory.max, and memory.high, above which the kernel throttles processes almost to a standstill. Version 1:
// memory.limit_in_bytes. `root` is the directory of /proc and of the mount points that /proc names.
[[nodiscard]] std::optional<MemoryLimit> control_group_limit(std::filesystem::path const& root = "/");

// Returns the same limit, or the machine's memory if that is less.
[[nodiscard]] MemoryLimit memory_limit(std::filesystem::path const& root = "/");

// Returns how much of it the control group with the limit has taken, or the machine, without what the kernel gives back
// when memory is short. Memory that a process only maps, such as that of another worker, counts where it was written.
// Nothing if the kernel does not say.
[[nodiscard]] std::optional<std::uint64_t> memory_used(MemoryLimit const& limit,
                                                       std::filesystem::path const& root = "/");

}  // namespace chorus::http
