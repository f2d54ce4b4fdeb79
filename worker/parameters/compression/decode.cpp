#include "worker/parameters/compression/decode.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "worker/devices/reduce.hpp"
#include "worker/parameters/compression/errc.hpp"
#include "worker/parameters/compression/float_codes.hpp"
#include "worker/parameters/compression/wire.hpp"

namespace chorus::parameters {
namespace {

Error wrong_length(std::string_view what, std::uint64_t wanted, std::uint64_t found) {
  return {CompressionErrc::length_mismatch,
          std::string(what) + " has " + std::to_string(wanted) + " bytes, not " + std::to_string(found)};
}

Status decode_halves(Dtype dtype, std::span<std::byte const> encoded, std::span<float> gradient) {
  auto const wanted = gradient.size() * element_bytes(dtype);
  if (encoded.size() != wanted)
    return wrong_length(std::to_string(gradient.size()) + " elements of " + std::string(name(dtype)), wanted,
                        encoded.size());
  auto* to = reinterpret_cast<std::byte*>(gradient.data());
  if (reinterpret_cast<std::uintptr_t>(encoded.data()) % element_bytes(dtype) == 0) {
    devices::widen(dtype, to, encoded.data(), gradient.size());
    return ok();
  }
  // A body may have any alignment, but the loop needs aligned elements.
  alignas(64) std::array<std::byte, 4096> block;
  for (auto rest = encoded; !rest.empty();) {
    auto const bytes = std::min(rest.size(), block.size());
    std::memcpy(block.data(), rest.data(), bytes);
    auto const elements = bytes / element_bytes(dtype);
    devices::widen(dtype, to, block.data(), elements);
    to += elements * sizeof(float);
    rest = rest.subspan(bytes);
  }
  return ok();
}

// Checks that the header is present and fits this gradient.
Status check_header(Compression compression, std::span<std::byte const> encoded, std::uint64_t elements) {
  if (encoded.size() < wire::header_bytes)
    return Error(CompressionErrc::length_mismatch, std::string(name(compression)) + " begins with " +
                                                       std::to_string(wire::header_bytes) + " bytes, there are " +
                                                       std::to_string(encoded.size()));
  auto const said = wire::load<std::uint64_t>(encoded.data());
  if (said != elements)
    return Error(CompressionErrc::bad_header,
                 "the gradient has " + std::to_string(elements) + " elements, the header says " + std::to_string(said));
  return ok();
}

template <class Index>
Status scatter(std::byte const* indices, std::byte const* values, std::uint64_t count, std::span<float> gradient) {
  std::uint64_t least = 0;  // the least valid next index
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t const index = wire::load<Index>(indices + i * sizeof(Index));
    if (index >= gradient.size())
      return Error(CompressionErrc::bad_index,
                   "index " + std::to_string(index) + " of " + std::to_string(gradient.size()) + " elements");
    if (index < least)
      return Error(CompressionErrc::bad_index, "index " + std::to_string(index) + " at place " + std::to_string(i) +
                                                   " does not follow a smaller one");
    gradient[index] = wire::load<float>(values + i * sizeof(float));
    least = index + 1;
  }
  return ok();
}

Status decode_top_k(std::span<std::byte const> encoded, std::span<float> gradient) {
  if (auto const header = check_header(Compression::top_k, encoded, gradient.size()); header.has_error()) return header;
  auto const count = wire::load<std::uint64_t>(encoded.data() + 8);
  if (count > gradient.size())
    return Error(CompressionErrc::bad_header,
                 std::to_string(count) + " indices for " + std::to_string(gradient.size()) + " elements");
  auto const index_bytes = wire::index_bytes(gradient.size());
  auto const wanted = wire::header_bytes + count * (index_bytes + sizeof(float));
  if (encoded.size() != wanted) return wrong_length("top_k of " + std::to_string(count), wanted, encoded.size());
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  auto const* const indices = encoded.data() + wire::header_bytes;
  auto const* const values = indices + count * index_bytes;
  return index_bytes == 4 ? scatter<std::uint32_t>(indices, values, count, gradient)
                          : scatter<std::uint64_t>(indices, values, count, gradient);
}

Status decode_two_bit(std::span<std::byte const> encoded, std::span<float> gradient) {
  if (auto const header = check_header(Compression::two_bit, encoded, gradient.size()); header.has_error())
    return header;
  auto const threshold = wire::load<float>(encoded.data() + 8);
  if (!(threshold > 0) || !std::isfinite(threshold))
    return Error(CompressionErrc::bad_header, "the threshold is no positive finite number");
  if (wire::load<std::uint32_t>(encoded.data() + 12) != 0)
    return Error(CompressionErrc::bad_header, "bytes 12 to 15 are not 0");
  auto const wanted = wire::header_bytes + wire::code_bytes(gradient.size());
  if (encoded.size() != wanted)
    return wrong_length("two_bit of " + std::to_string(gradient.size()) + " elements", wanted, encoded.size());
  auto const* const codes = encoded.data() + wire::header_bytes;
  float const values[4] = {0, threshold, -threshold, 0};
  unsigned invalid = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    auto const code = std::to_integer<unsigned>(codes[i / 4]) >> (i % 4 * 2) & 3U;
    invalid |= code & (code >> 1);
    gradient[i] = values[code];
  }
  if (invalid != 0) return Error(CompressionErrc::bad_code, "two_bit has no code 3");
  if (auto const used = gradient.size() % 4; used != 0 && (std::to_integer<unsigned>(encoded.back()) >> used * 2) != 0)
    return Error(CompressionErrc::bad_code, "the bits after the last element are not 0");
  return ok();
}

Status decode_int8(std::span<std::byte const> encoded, std::span<float> gradient) {
  auto const codec = float_codes(Compression::int8);
  if (auto const wanted = codec.bytes(gradient.size()); encoded.size() != wanted)
    return wrong_length("int8 of " + std::to_string(gradient.size()) + " elements", wanted, encoded.size());
  for (std::size_t block = 0; block < encoded.size(); block += block_bytes) {
    auto const scale = wire::load<float>(encoded.data() + block + block_codes);
    if (!std::isfinite(scale) || std::signbit(scale))
      return Error(CompressionErrc::bad_scale,
                   "the scale of block " + std::to_string(block / block_bytes) + " is negative or not finite");
  }
  if (auto const used = gradient.size() % block_codes; used != 0) {
    auto const unused = encoded.last(block_bytes).first(block_codes).subspan(used);
    if (std::ranges::any_of(unused, [](std::byte code) { return code != std::byte{0}; }))
      return Error(CompressionErrc::bad_code, "the codes after the last element are not 0");
  }
  codec.decode(std::as_writable_bytes(gradient), encoded);
  return ok();
}

}  // namespace

Status decode(Compression compression, std::span<std::byte const> encoded, std::span<float> gradient) {
  switch (compression) {
    case Compression::f16:
      return decode_halves(Dtype::f16, encoded, gradient);
    case Compression::bf16:
      return decode_halves(Dtype::bf16, encoded, gradient);
    case Compression::top_k:
      return decode_top_k(encoded, gradient);
    case Compression::two_bit:
      return decode_two_bit(encoded, gradient);
    case Compression::int8:
      return decode_int8(encoded, gradient);
  }
  return Error(CompressionErrc::bad_settings, "no such compression");
}

std::uint64_t encoded_bytes_max(Compression compression, std::uint64_t elements) {
  switch (compression) {
    case Compression::f16:
    case Compression::bf16:
      return elements * 2;
    case Compression::top_k:
      return wire::header_bytes + elements * (wire::index_bytes(elements) + sizeof(float));
    case Compression::two_bit:
      return wire::header_bytes + wire::code_bytes(elements);
    case Compression::int8:
      return float_codes(compression).bytes(elements);
  }
  return 0;
}

}  // namespace chorus::parameters
