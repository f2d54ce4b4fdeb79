// Gradients of one parameter in fewer bytes: encoded shard by shard, with what is lost kept for the next one.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "worker/api/parameters.hpp"
#include "worker/parameters/compression/encoder.hpp"
#include "worker/parameters/serving/access/access.hpp"

namespace chorus {

// One thread at a time. A gradient that was encoded stays until its push has ended: it is repeated as it was sent.
class GradientCompressor {
 public:
  using Encoded = std::shared_ptr<parameters::Access::Compressed const>;

  // Errors: bad_argument. Gradients are compressed from now on.
  [[nodiscard]] Result<void> start(GradientCompression wanted, std::uint64_t elements);
  [[nodiscard]] bool is_on() const { return encoder_.has_value(); }
  // Per element: what has not been sent. Empty while gradients are not compressed.
  [[nodiscard]] std::span<float> residual() { return encoder_ ? encoder_->residual() : std::span<float>(); }

  // Unless there is one already. Errors: bad_argument.
  [[nodiscard]] std::optional<Error> encode(std::span<float const> gradient, parameters::Placement const& placement);
  [[nodiscard]] Encoded const& encoded() const { return encoded_; }
  [[nodiscard]] Result<double> norm_of_encoded(parameters::Placement const& placement) const;

  // Its push has ended.
  void settle() { encoded_ = nullptr; }
  // Nobody has applied it, and nobody will: it becomes a part of the next one.
  void take_back(parameters::Placement const& placement);

 private:
  std::optional<parameters::Compression> compression_;
  std::optional<parameters::GradientEncoder> encoder_;
  Encoded encoded_;  // of the push that is under way, or to be repeated
};

}  // namespace chorus
