// A conversion between floats and their codes in device memory as plain data, which the CUDA compiler reads, too.
// docs/reference/float_codes.md has the formats; the CPU's conversions are those of worker/devices/codec.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/core/wire_format.hpp"

namespace chorus::devices {

// Elements are aligned to their size, blocks of codes to 4 bytes. The two do not overlap.
struct CodeOrder {
  WireFormat format = WireFormat::int8;
  Dtype dtype = Dtype::f32;  // of the elements; has_format(dtype, format) holds
  bool decodes = false;      // from codes to elements; otherwise from elements to codes
  std::byte* to = nullptr;
  std::byte const* from = nullptr;
  std::uint64_t elements = 0;
};

}  // namespace chorus::devices
