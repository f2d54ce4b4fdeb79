// Reads the headers of safetensors files. They are checked against every rule of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/core/result.hpp"
#include "worker/parameters/checkpoints/safetensors.hpp"

namespace chorus::checkpoints {

// Returns the length of the header from the first 8 bytes of a file of file_bytes. Errors: truncated, header_too_large.
[[nodiscard]] Result<std::uint64_t> safetensors_header_bytes(std::span<std::byte const> prefix,
                                                             std::uint64_t file_bytes);

// `text` is the header, without its prefix. Errors: any of SafetensorsErrc.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors(std::string_view text, std::uint64_t file_bytes);

}  // namespace chorus::checkpoints
