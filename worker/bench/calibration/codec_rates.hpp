// Speed of codes of floats on one core, for the cost model.
#pragma once

#include <cstdint>

#include "collectives/core/wire_format.hpp"
#include "http/api/cluster/constants.hpp"

namespace chorus::bench {

// Measures a vector of so many bytes of f32: encodes and decodes it as a compressed collective does, and adds codes of
// this size to a sum that stays in f32. Returns the fastest of several passes; the others were disturbed.
[[nodiscard]] api::FormatConstants measure_codec(WireFormat format, std::uint64_t vector_bytes);

// The same of all formats.
[[nodiscard]] api::CodecConstants measure_codecs(std::uint64_t vector_bytes);

}  // namespace chorus::bench
