#include "worker/parameters/compression/encoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "collectives/core/assert.hpp"
#include "worker/parameters/compression/errc.hpp"
#include "worker/parameters/compression/float_codes.hpp"
#include "worker/parameters/compression/wire.hpp"

namespace chorus::parameters {
namespace {

constexpr std::size_t block_elements = 1024;

// Without a call of std::isfinite, so that loops over it are vectorized.
bool is_finite(float x) { return std::abs(x) <= std::numeric_limits<float>::max(); }

// Returns the index of the first sum that is not finite, or the size.
std::size_t find_nonfinite_sum(std::span<float const> a, std::span<float const> b) {
  int wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) wrong |= is_finite(a[i] + b[i]) ? 0 : 1;
  if (wrong == 0) return a.size();
  std::size_t first = 0;
  while (is_finite(a[first] + b[first])) ++first;
  return first;
}

// Returns the sort key: a NaN is the largest, so that it is sent and does not stay in the residual for ever.
float magnitude(float x) { return std::isnan(x) ? std::numeric_limits<float>::infinity() : std::abs(x); }

std::uint64_t count_to_send(double fraction, std::uint64_t elements) {
  auto const wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(elements)));
  return std::clamp<std::uint64_t>(wanted, std::min<std::uint64_t>(1, elements), elements);
}

}  // namespace

GradientEncoder::GradientEncoder(CompressionSettings settings, std::uint64_t elements)
    : settings_(settings), residual_(elements) {}

Result<GradientEncoder> GradientEncoder::make(CompressionSettings settings, std::uint64_t elements) {
  if (settings.compression == Compression::top_k && !(settings.fraction > 0 && settings.fraction <= 1))
    return Error(CompressionErrc::bad_settings,
                 "top_k sends a fraction of more than 0 and at most 1, not " + std::to_string(settings.fraction));
  if (settings.compression == Compression::two_bit && !(settings.threshold > 0 && std::isfinite(settings.threshold)))
    return Error(CompressionErrc::bad_settings,
                 "two_bit has a positive finite threshold, not " + std::to_string(settings.threshold));
  return GradientEncoder(settings, elements);
}

Result<std::span<std::byte const>> GradientEncoder::encode(std::uint64_t first_element,
                                                           std::span<float const> gradient) {
  CHORUS_ASSERT(first_element <= residual_.size() && gradient.size() <= residual_.size() - first_element,
                "the elements are the parameter's");
  auto const residual = std::span(residual_).subspan(first_element, gradient.size());
  switch (settings_.compression) {
    case Compression::f16:
    case Compression::bf16:
    case Compression::int8:
      encode_floats(gradient, residual);
      break;
    case Compression::top_k:
      encode_top_k(gradient, residual);
      break;
    case Compression::two_bit:
      if (auto const wrong = find_nonfinite_sum(gradient, residual); wrong < gradient.size())
        return Error(CompressionErrc::nonfinite, "element " + std::to_string(first_element + wrong) +
                                                     " is not finite, which two_bit has no code for");
      encode_two_bit(gradient, residual);
      break;
  }
  return std::span<std::byte const>(encoded_);
}

void GradientEncoder::encode_floats(std::span<float const> gradient, std::span<float> residual) {
  auto const codec = float_codes(settings_.compression);
  encoded_.resize(codec.bytes(gradient.size()));
  codec.encode(encoded_, std::as_bytes(gradient), residual, residual);
}

void GradientEncoder::encode_top_k(std::span<float const> gradient, std::span<float> residual) {
  auto const elements = gradient.size();
  auto const count = count_to_send(settings_.fraction, elements);
  magnitudes_.resize(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    residual[i] += gradient[i];
    magnitudes_[i] = magnitude(residual[i]);
  }
  // The least magnitude that is sent, and the number of elements of exactly this magnitude that are sent: the first
  // ones, so that the result depends on the gradients only.
  float least = 0;
  std::uint64_t of_least = 0;
  if (count > 0) {
    auto const last = magnitudes_.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(magnitudes_.begin(), last, magnitudes_.end(), std::greater<>());
    least = *last;
    auto const greater = std::count_if(magnitudes_.begin(), last, [&](float x) { return x > least; });
    of_least = count - static_cast<std::uint64_t>(greater);
  }

  auto const index_bytes = wire::index_bytes(elements);
  encoded_.resize(wire::header_bytes + count * (index_bytes + sizeof(float)));
  wire::store<std::uint64_t>(encoded_.data(), elements);
  wire::store<std::uint64_t>(encoded_.data() + 8, count);
  auto* const indices = encoded_.data() + wire::header_bytes;
  auto* const values = indices + count * index_bytes;
  std::uint64_t sent = 0;
  for (std::uint64_t index = 0; index < elements && sent < count; ++index) {
    auto const size = magnitude(residual[index]);
    if (size < least || (size == least && of_least == 0)) continue;
    if (size == least) --of_least;
    if (index_bytes == 4)
      wire::store(indices + sent * 4, static_cast<std::uint32_t>(index));
    else
      wire::store(indices + sent * 8, index);
    wire::store(values + sent * sizeof(float), residual[index]);
    residual[index] = 0;
    ++sent;
  }
  // What is not finite and was too much to be sent would spoil the later gradients of its elements.
  if (least == std::numeric_limits<float>::infinity())
    for (auto& rest : residual)
      if (!is_finite(rest)) rest = 0;
}

void GradientEncoder::encode_two_bit(std::span<float const> gradient, std::span<float> residual) {
  auto const elements = gradient.size();
  auto const threshold = settings_.threshold;
  encoded_.assign(wire::header_bytes + wire::code_bytes(elements), std::byte{0});
  wire::store<std::uint64_t>(encoded_.data(), elements);
  wire::store<float>(encoded_.data() + 8, threshold);
  std::array<std::uint8_t, block_elements> codes;
  for (std::size_t at = 0; at < elements; at += block_elements) {
    auto const count = std::min(block_elements, elements - at);
    for (std::size_t i = 0; i < count; ++i) {
      auto const sum = gradient[at + i] + residual[at + i];
      auto const plus = sum >= threshold, minus = sum <= -threshold;
      residual[at + i] = sum - (plus ? threshold : minus ? -threshold : 0.0F);
      codes[i] = static_cast<std::uint8_t>(plus ? wire::Code::plus : minus ? wire::Code::minus : wire::Code::zero);
    }
    auto const bytes = wire::code_bytes(count);
    for (std::size_t i = count; i < bytes * wire::codes_per_byte; ++i) codes[i] = 0;
    auto* const packed = encoded_.data() + wire::header_bytes + at / wire::codes_per_byte;
    for (std::size_t i = 0; i < bytes; ++i)
      packed[i] =
          static_cast<std::byte>(codes[4 * i] | codes[4 * i + 1] << 2 | codes[4 * i + 2] << 4 | codes[4 * i + 3] << 6);
  }
}

}  // namespace chorus::parameters
