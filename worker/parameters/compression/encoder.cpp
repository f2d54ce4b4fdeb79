#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "collectives/core/assert.hpp"
#include "worker/devices/fold.hpp"
#include "worker/parameters/compression/compression.hpp"
#include "worker/parameters/compression/errc.hpp"
#include "worker/parameters/compression/wire.hpp"

namespace chorus::parameters {
namespace {

constexpr std::array<std::string_view, all_compressions.size()> names{"f16", "bf16", "top_k", "two_bit"};

// The largest finite number of the format: what is greater is sent as this, and the rest later.
float largest(Compression compression) {
  constexpr float largest_bf16 = 3.38953139e38F;
  return compression == Compression::f16 ? 65504.0F : largest_bf16;
}

// What to sort by: a NaN is the largest, so that it is sent and found, and not kept for ever.
float magnitude(float x) { return std::isnan(x) ? std::numeric_limits<float>::infinity() : std::abs(x); }

std::uint64_t count_to_send(double fraction, std::uint64_t elements) {
  auto const wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(elements)));
  return std::clamp<std::uint64_t>(wanted, std::min<std::uint64_t>(1, elements), elements);
}

}  // namespace

std::string_view name(Compression compression) { return names[static_cast<std::size_t>(compression)]; }

std::optional<Compression> parse_compression(std::string_view text) {
  for (auto const compression : all_compressions)
    if (name(compression) == text) return compression;
  return std::nullopt;
}

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
  sums_.resize(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) sums_[i] = gradient[i] + residual[i];
  if (settings_.compression == Compression::two_bit) {
    auto const finite = [](float x) { return std::isfinite(x); };
    auto const wrong = std::find_if_not(sums_.begin(), sums_.end(), finite);
    if (wrong != sums_.end())
      return Error(CompressionErrc::nonfinite, "element " + std::to_string(first_element + (wrong - sums_.begin())) +
                                                   " is not finite, which two_bit has no code for");
    encode_two_bit(residual);
  } else if (settings_.compression == Compression::top_k) {
    encode_top_k(residual);
  } else {
    encode_halves(residual);
  }
  return std::span<std::byte const>(encoded_);
}

void GradientEncoder::encode_halves(std::span<float> residual) {
  auto const dtype = settings_.compression == Compression::f16 ? Dtype::f16 : Dtype::bf16;
  auto const limit = largest(settings_.compression);
  encoded_.resize(sums_.size() * element_bytes(dtype));
  // What is sent is made from a limited copy, which lies in the residual's place until the difference is known.
  for (std::size_t i = 0; i < sums_.size(); ++i)
    residual[i] = std::isfinite(sums_[i]) ? std::clamp(sums_[i], -limit, limit) : sums_[i];
  devices::Folder const folder(ReduceOp::sum, dtype);
  auto* wide = reinterpret_cast<std::byte*>(residual.data());
  std::byte const* wide_source = wide;
  auto* narrow = encoded_.data();
  std::byte const* narrow_source = narrow;
  folder.run({&wide_source, 1, &narrow, 1, sums_.size(), false}, {1, true, false});
  folder.run({&narrow_source, 1, &wide, 1, sums_.size(), false}, {1, false, true});
  for (std::size_t i = 0; i < sums_.size(); ++i) residual[i] = std::isfinite(sums_[i]) ? sums_[i] - residual[i] : 0;
}

void GradientEncoder::encode_top_k(std::span<float> residual) {
  auto const elements = sums_.size();
  auto const count = count_to_send(settings_.fraction, elements);
  magnitudes_.resize(elements);
  std::transform(sums_.begin(), sums_.end(), magnitudes_.begin(), magnitude);
  // The least magnitude that is sent, and how many elements of just this one are: the first ones, so that what is sent
  // is a function of the gradients alone.
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
  std::copy(sums_.begin(), sums_.end(), residual.begin());
  std::uint64_t sent = 0;
  for (std::uint64_t index = 0; index < elements && sent < count; ++index) {
    auto const size = magnitude(sums_[index]);
    if (size < least || (size == least && of_least == 0)) continue;
    if (size == least) --of_least;
    if (index_bytes == 4)
      wire::store(indices + sent * 4, static_cast<std::uint32_t>(index));
    else
      wire::store(indices + sent * 8, index);
    wire::store(values + sent * sizeof(float), sums_[index]);
    residual[index] = 0;
    ++sent;
  }
}

void GradientEncoder::encode_two_bit(std::span<float> residual) {
  auto const elements = sums_.size();
  auto const threshold = settings_.threshold;
  encoded_.assign(wire::header_bytes + wire::code_bytes(elements), std::byte{0});
  wire::store<std::uint64_t>(encoded_.data(), elements);
  wire::store<float>(encoded_.data() + 8, threshold);
  auto* const codes = encoded_.data() + wire::header_bytes;
  for (std::size_t i = 0; i < elements; ++i) {
    auto const sum = sums_[i];
    auto const code = sum >= threshold ? wire::Code::plus : sum <= -threshold ? wire::Code::minus : wire::Code::zero;
    auto const sent = sum >= threshold ? threshold : sum <= -threshold ? -threshold : 0.0F;
    codes[i / 4] |= static_cast<std::byte>(static_cast<unsigned>(code) << (i % 4 * 2));
    residual[i] = sum - sent;
  }
}

}  // namespace chorus::parameters
