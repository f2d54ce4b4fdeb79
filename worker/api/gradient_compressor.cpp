#include "worker/api/gradient_compressor.hpp"

#include <algorithm>
#include <cmath>

#include "worker/parameters/compression/decode.hpp"
#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus {

Result<void> GradientCompressor::start(GradientCompression wanted, std::uint64_t elements) {
  auto const compression = parameters::all_compressions.at(static_cast<std::size_t>(wanted.kind));
  auto encoder = parameters::GradientEncoder::make({compression, wanted.fraction, wanted.threshold}, elements);
  if (!encoder) return Error(ParametersErrc::bad_argument, encoder.error().detail);
  compression_ = compression;
  encoder_ = std::move(*encoder);
  return ok();
}

Result<double> GradientCompressor::norm_of_encoded(parameters::Placement const& placement) const {
  double squared = 0;
  for (std::size_t shard = 0; shard < encoded_->parts.size(); ++shard) {
    auto const& range = placement.owners[shard].elements;
    std::vector<float> decoded(range[1] - range[0]);
    if (auto const status = parameters::decode(*compression_, encoded_->parts[shard], decoded); !status)
      return status.error();
    if (placement.parameter.nonfinite == "zero")
      parameters::zero_nonfinite(Dtype::f32, std::as_writable_bytes(std::span(decoded)));
    squared += parameters::squared_norm({std::as_bytes(std::span(decoded)), Dtype::f32});
  }
  return std::sqrt(squared);
}

std::optional<Error> GradientCompressor::encode(std::span<float const> gradient,
                                                parameters::Placement const& placement) {
  if (encoded_) return std::nullopt;
  // A shard's part must not be encoded that is not sent.
  bool const has_no_code = *compression_ == parameters::Compression::two_bit;
  bool const is_refused = placement.parameter.nonfinite == "reject";
  auto const nonfinite =
      has_no_code || is_refused ? parameters::count_nonfinite(Dtype::f32, std::as_bytes(gradient)) : 0;
  if (has_no_code && nonfinite != 0)
    return Error(ParametersErrc::bad_argument, "two_bit has no code for NaN and infinity");
  // Owners would refuse it, and the residual would keep a NaN for ever.
  if (is_refused && nonfinite != 0)
    return Error(ParametersErrc::refused, "non_finite: " + std::to_string(nonfinite) + " elements for " +
                                              placement.parameter.name + " are NaN or infinite");
  auto made = std::make_shared<parameters::Access::Compressed>();
  made->compression = parameters::name(*compression_);
  for (auto const& endpoint : placement.owners) {
    auto const begin = endpoint.elements[0];
    auto const part = encoder_->encode(begin, gradient.subspan(begin, endpoint.elements[1] - begin));
    if (!part) return Error(ParametersErrc::bad_argument, part.error().detail);
    made->parts.emplace_back(part->begin(), part->end());
  }
  encoded_ = std::move(made);
  return std::nullopt;
}

void GradientCompressor::take_back(parameters::Placement const& placement) {
  auto const residual = encoder_->residual();
  for (std::size_t shard = 0; shard < encoded_->parts.size(); ++shard) {
    auto const& range = placement.owners[shard].elements;
    std::vector<float> decoded(range[1] - range[0]);
    if (!parameters::decode(*compression_, encoded_->parts[shard], decoded)) continue;
    for (std::size_t i = 0; i < decoded.size(); ++i)
      if (std::isfinite(decoded[i])) residual[range[0] + i] += decoded[i];
  }
  encoded_ = nullptr;
}

}  // namespace chorus
