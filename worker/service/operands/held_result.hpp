// The result of a run that has ended well, until it becomes the tensor's next version or is dropped.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Out of place the result is a block beside the old version, and dropping it changes nothing. In place it has
// overwritten the tensor's memory, so it is a new version whatever is decided: in_place gives up atomicity. The store
// outlives the result.
class HeldResult {
 public:
  HeldResult() = default;
  // The version of `tensor` after `version`; without one, replaces any version.
  HeldResult(std::string tensor, Dtype dtype, tensors::Shape shape, std::optional<std::uint64_t> version,
             std::shared_ptr<tensors::Block const> result)
      : HeldResult(
            {tensors::Store::NewVersion{std::move(tensor), dtype, std::move(shape), std::move(result), version}}) {}
  // The next versions of several tensors, all or none.
  explicit HeldResult(std::vector<tensors::Store::NewVersion> versions) : held_(Beside{std::move(versions)}) {}
  explicit HeldResult(std::shared_ptr<tensors::Store::Exclusive> overwritten) : held_(std::move(overwritten)) {}

  // For a rank that gets no result and keeps its tensor.
  [[nodiscard]] static HeldResult unchanged(std::uint64_t version);

  // Commits and drops `other` together with this result, which is empty or of the same kind: both beside the old
  // versions, or both none.
  void add(HeldResult other);

  // The residual of the run, kept when this result is committed. Null: none.
  void keep_with(std::shared_ptr<tensors::Residuals::Use> residual) { residual_ = std::move(residual); }

  [[nodiscard]] bool empty() const { return std::holds_alternative<std::monostate>(held_); }

  // Returns the new version, or the sum of several. Results for clients' regions are copied there by the helper; only
  // then the coroutine suspends. All or none are committed, unless a region is damaged meanwhile. Errors:
  // TensorErrc::version_changed, unknown, busy if the tensor was changed meanwhile; MemoryErrc::damaged, or GpuErrc for
  // copies from a GPU: a region may then hold a part of the result. Store and helper outlive the call.
  boost::asio::awaitable<Result<std::uint64_t>> commit(tensors::Store& store, Helper& helper) &&;
  void drop();

 private:
  struct Beside {
    std::vector<tensors::Store::NewVersion> versions;
  };
  struct Unchanged {
    std::uint64_t version;
  };
  using Held = std::variant<std::monostate, Beside, Unchanged, std::shared_ptr<tensors::Store::Exclusive>>;
  static boost::asio::awaitable<Result<std::uint64_t>> commit_held(Held held, tensors::Store& store, Helper& helper);

  Held held_;
  std::shared_ptr<tensors::Residuals::Use> residual_;
};

}  // namespace chorus::service
