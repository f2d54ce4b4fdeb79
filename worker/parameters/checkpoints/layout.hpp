// Names and places of a checkpoint's files.
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

// Letters, digits and ._- only, and no name that leads elsewhere: names in manifests come from outside.
[[nodiscard]] bool is_plain_name(std::string_view name);

// The numbers of all that look like checkpoints, the greatest first. A directory that is not there has none.
[[nodiscard]] Result<std::vector<std::uint64_t>> list_numbers(Files& files, std::string const& directory);

// Whether it has a manifest, good or bad.
[[nodiscard]] Result<bool> is_committed(Files& files, std::string const& checkpoint_directory);

[[nodiscard]] inline bool is_missing(Error const& error) { return error.code == std::errc::no_such_file_or_directory; }

}  // namespace chorus::checkpoints
