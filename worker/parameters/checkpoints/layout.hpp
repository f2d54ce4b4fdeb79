// Names and paths of checkpoints' files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/parameters/checkpoints/files.hpp"

namespace chorus::checkpoints {

inline constexpr std::string_view manifest_name = "manifest.json";
inline constexpr std::string_view temporary_suffix = ".partial";

[[nodiscard]] std::string directory_name(std::uint64_t number);  // "checkpoint-000000000007"
[[nodiscard]] std::string join(std::string_view directory, std::string_view name);

// Makes the directory's own entry survive a crash.
[[nodiscard]] Status sync_entry_of(Files& files, std::string const& directory);

// Returns true for names of letters, digits and ._- that stay within their directory. Names in manifests come from
// outside.
[[nodiscard]] bool is_plain_name(std::string_view name);

// Returns the numbers of all checkpoint directories, the greatest first; none if the directory does not exist.
[[nodiscard]] Result<std::vector<std::uint64_t>> list_numbers(Files& files, std::string const& directory);

// Returns true if the checkpoint has a manifest, good or bad.
[[nodiscard]] Result<bool> is_committed(Files& files, std::string const& checkpoint_directory);

// Removes the directory if it is empty. Ignores errors.
void remove_if_empty(Files& files, std::string const& directory);

[[nodiscard]] inline bool is_missing(Error const& error) { return error.code == std::errc::no_such_file_or_directory; }

}  // namespace chorus::checkpoints
