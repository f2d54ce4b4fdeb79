// The parts of the formats that encoder and decoder share. Little-endian, without padding.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace chorus::parameters::wire {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in memory");

// top_k: u64 elements, u64 count, count indices, count f32 values. two_bit: u64 elements, f32 threshold, u32 0, codes.
inline constexpr std::size_t header_bytes = 16;

constexpr std::size_t index_bytes(std::uint64_t elements) { return elements <= std::uint64_t{1} << 32 ? 4 : 8; }

enum class Code : std::uint8_t { zero = 0, plus = 1, minus = 2 };  // 3 is invalid
inline constexpr std::uint64_t codes_per_byte = 4;                 // the first in the lowest bits

constexpr std::uint64_t code_bytes(std::uint64_t elements) {
  return elements / codes_per_byte + (elements % codes_per_byte != 0 ? 1 : 0);
}

template <class Number>
[[nodiscard]] Number load(std::byte const* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}
template <class Number>
void store(std::byte* at, Number number) {
  std::memcpy(at, &number, sizeof number);
}

}  // namespace chorus::parameters::wire
