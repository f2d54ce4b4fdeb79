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
#include "worker/service/helper.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Out of place the result lies in a block beside the old version, and dropping it changes nothing. In place it has
// overwritten the tensor's own memory, so it is a new version whatever is decided: in_place gives up atomicity.
// The store outlives it.
class HeldResult {
 public:
  HeldResult() = default;
  // The next version of `tensor` after `version`, or of whatever stands there if there is none.
  HeldResult(std::string tensor, Dtype dtype, tensors::Shape shape, std::optional<std::uint64_t> version,
             std::shared_ptr<tensors::Block const> result)
      : HeldResult(
            {tensors::Store::NewVersion{std::move(tensor), dtype, std::move(shape), std::move(result), version}}) {}
  // The next versions of several tensors, all or none.
  explicit HeldResult(std::vector<tensors::Store::NewVersion> versions) : held_(Beside{std::move(versions)}) {}
  explicit HeldResult(std::shared_ptr<tensors::Store::Exclusive> overwritten) : held_(std::move(overwritten)) {}

  // Of a rank that gets nothing, and keeps what it has.
  [[nodiscard]] static HeldResult unchanged(std::uint64_t version);

  // What `other` holds is committed or dropped with this, which is empty, or of the same kind: results beside the old
  // versions, or none.
  void add(HeldResult other);

  [[nodiscard]] bool empty() const { return std::holds_alternative<std::monostate>(held_); }

  // Gives the new version, of several the sum. What lies in a client's region gets its result there, copied by the
  // helper: only then does this suspend. All or none, unless a region is damaged meanwhile. Errors: TensorErrc
  // version_changed, unknown, busy when somebody changed the tensor meanwhile; MemoryErrc::damaged, and GpuErrc of a
  // result on its way from a GPU: a region may then hold part of it. Store and helper outlive the call.
  boost::asio::awaitable<Result<std::uint64_t>> commit(tensors::Store& store, Helper& helper) &&;
  void drop();

 private:
  struct Beside {
    std::vector<tensors::Store::NewVersion> versions;
  };
  struct Unchanged {
    std::uint64_t version;
  };
  std::variant<std::monostate, Beside, Unchanged, std::shared_ptr<tensors::Store::Exclusive>> held_;
};

}  // namespace chorus::service
