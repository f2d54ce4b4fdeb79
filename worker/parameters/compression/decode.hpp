// The server's side of compressed gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/result.hpp"
#include "worker/parameters/compression/compression.hpp"

namespace chorus::parameters {

// Writes every element of `gradient`; elements that were not sent are 0. Errors:
// length_mismatch, bad_header, bad_index (out of range, not ascending), bad_code (also unused bits that are not 0),
// bad_scale (of int8: negative or not finite); then `gradient` is undefined.
[[nodiscard]] Status decode(Compression compression, std::span<std::byte const> encoded, std::span<float> gradient);

// Returns the most bytes that decode accepts for so many elements: the limit of bodies.
[[nodiscard]] std::uint64_t encoded_bytes_max(Compression compression, std::uint64_t elements);

}  // namespace chorus::parameters
