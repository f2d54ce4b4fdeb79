// Lets readers of an owner's shard wait for the version that they need.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "worker/parameters/serving/copy/shard_copy.hpp"

namespace chorus::parameters {

struct ReadConstraints {
  std::optional<std::uint64_t> min_version;
  std::optional<std::uint64_t> clock;
};

struct ShardView {
  std::shared_ptr<tensors::Block const> values;
  std::uint64_t version = 0;
  std::uint32_t epoch = 0;
  bool is_unconfirmed = false;  // the owner is suspended, so another owner may have newer values
};

// Used on the control thread. The objects that it refers to outlive it.
class ShardReader {
 public:
  ShardReader(ShardTools const& tools, ShardCopy& copy, Tenure const& tenure)
      : tools_(tools), copy_(copy), tenure_(tenure) {}

  // Returns the values. Problems: those of Tenure::why_not_serving; deadline_exceeded.
  boost::asio::awaitable<http::Checked<ShardView>> view(ReadConstraints constraints, http::TimePoint deadline);
  // The same without waiting; nothing if the caller would have to wait.
  [[nodiscard]] std::optional<ShardView> view_now() const;
  // Copies rows of a view like Shard::copy_rows. The memory of both spans outlives the call.
  boost::asio::awaitable<http::Checked<ShardView>> copy_rows(ReadConstraints constraints,
                                                             std::span<std::uint64_t const> rows,
                                                             std::span<std::byte> into, http::TimePoint deadline);

 private:
  boost::asio::awaitable<std::optional<http::Problem>> download(http::TimePoint deadline);

  ShardTools const& tools_;
  ShardCopy& copy_;
  Tenure const& tenure_;
};

}  // namespace chorus::parameters
