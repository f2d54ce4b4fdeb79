// Conversion between floats and their codes, which have fewer bytes. docs/reference/float_codes.md has the formats and
// the bounds of their errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/wire_format.hpp"

namespace chorus::devices {

// Codes of a dtype in a format. A value; any thread.
class Codec {
 public:
  // has_format(dtype, format) holds.
  Codec(WireFormat format, Dtype dtype) : format_(format), dtype_(dtype), carrier_(carrier_of(format)) {}

  [[nodiscard]] Dtype carrier() const { return carrier_; }
  // Size of the codes of so many elements.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t elements) const {
    return carriers(format_, elements) * element_bytes(carrier_);
  }

  // codes.size() is bytes() of the elements. No overlap. Any bytes decode to something; a NaN or an infinity becomes
  // NaN in blocks, and keeps its kind in f16 and bf16.
  void encode(std::span<std::byte> codes, std::span<std::byte const> elements) const;
  // Error feedback: encodes elements + residual, computed in f32, and writes what the codes lack of these sums to
  // `lost`. Both have a float per element; `lost` may be the same memory as `residual`, which may be empty instead: all
  // 0. A sum beyond the range of f16 or bf16 is sent as the largest number, and the rest is lost; one that is not
  // finite is sent as it is and leaves 0.
  void encode(std::span<std::byte> codes, std::span<std::byte const> elements, std::span<float const> residual,
              std::span<float> lost) const;
  void decode(std::span<std::byte> elements, std::span<std::byte const> codes) const;

 private:
  WireFormat format_;
  Dtype dtype_, carrier_;
};

}  // namespace chorus::devices
