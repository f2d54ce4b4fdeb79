// The codec of the encodings that send a code for every element: docs/reference/float_codes.md.
#pragma once

#include "worker/devices/codec.hpp"
#include "worker/parameters/compression/compression.hpp"

namespace chorus::parameters {

// compression: f16, bf16 or int8.
[[nodiscard]] inline devices::Codec float_codes(Compression compression) {
  auto const format = compression == Compression::f16    ? WireFormat::f16
                      : compression == Compression::bf16 ? WireFormat::bf16
                                                         : WireFormat::int8;
  return {format, Dtype::f32};
}

}  // namespace chorus::parameters
