// Vectors that are hard to encode, and the documented error of one encoding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/plan/spec.hpp"
#include "worker/devices/codec.hpp"

namespace chorus::engine::testing {

using Floats = std::vector<float>;

// Element i of rank r: blocks of one outlier, of subnormal numbers, of equal numbers, of alternating signs, and others.
inline float value_of(plan::Rank rank, std::uint64_t i) {
  auto const mixed =
      static_cast<float>(static_cast<double>((i + 1 + rank * 7919) * 0x9e3779b97f4a7c15u >> 40) / 0x1p23 - 1);
  switch (i / 300 % 5) {
    case 0:
      return i % 300 == 7 ? 1e4F : mixed;  // the sum of six is in the range of f16
    case 1:
      return mixed * 0x1p-130F;
    case 2:
      return 3.3F;
    case 3:
      return i % 2 == 0 ? 1.7F : -1.7F;
    default:
      return mixed * static_cast<float>(rank + 1);
  }
}

inline Floats vector_of(plan::Rank rank, std::uint64_t elements) {
  Floats values;
  for (std::uint64_t i = 0; i < elements; ++i) values.push_back(value_of(rank, i));
  return values;
}

// Encodes and decodes.
template <class T>
std::vector<T> through(WireFormat format, std::vector<T> const& values) {
  devices::Codec const codec(format, sizeof(T) == sizeof(float) ? Dtype::f32 : Dtype::f64);
  std::vector<std::byte> codes(codec.bytes(values.size()));
  codec.encode(codes, std::as_bytes(std::span(values)));
  std::vector<T> back(values.size());
  codec.decode(std::as_writable_bytes(std::span(back)), codes);
  return back;
}

// Bound of the error of one encoding: c m + d.
struct OneEncoding {
  double c, d;
};

inline OneEncoding one_encoding(WireFormat format) {
  switch (format) {
    case WireFormat::bf16:
      return {0x1p-8, 0x1p-134};
    case WireFormat::f16:
      return {0x1p-11, 0x1p-25};
    case WireFormat::int8:
      return {(1 + 0x1p-14) / 254, 0x1p-119};
    case WireFormat::fp8_e4m3:
      break;
  }
  return {(1 + 0x1p-17) / 28, 0x1p-117};
}

}  // namespace chorus::engine::testing
