// The lower level of a collective on a worker that contributes several tensors: what happens in the worker's memory
// before and after the worker takes part as one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "worker/engine/groups/carried.hpp"
#include "worker/service/operands/held_result.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// Created and queried on the control thread; allocate(), combine() and spread() run on one thread at a time. Holds the
// tensors as they were, and memory for their next versions.
class InputAdapter {
 public:
  InputAdapter() = default;
  virtual ~InputAdapter() = default;
  InputAdapter(InputAdapter const&) = delete;
  InputAdapter& operator=(InputAdapter const&) = delete;

  [[nodiscard]] virtual Dtype dtype() const = 0;
  [[nodiscard]] virtual std::uint64_t elements() const = 0;  // of the vector that travels
  [[nodiscard]] virtual std::uint64_t version() const = 0;   // sum of all versions
  [[nodiscard]] virtual std::vector<std::shared_ptr<tensors::Block const>> blocks() const = 0;  // of the tensors

  // Hash of what ranks must agree on besides the size of the vector, 0 if nothing; and its text, appended to the
  // operation.
  [[nodiscard]] virtual std::uint64_t agreement() const = 0;
  [[nodiscard]] virtual std::string agreement_text() const = 0;

  // The GPU that does all the work, null for the host: combine() and spread() wait for that GPU.
  [[nodiscard]] virtual devices::GpuUnit* gpu() const = 0;

  // Allocates memory for combine() if tensors are contributed, and for spread() if there is a result. Errors:
  // TensorErrc::out_of_memory, GpuErrc.
  [[nodiscard]] virtual Status allocate(tensors::Pool& pool, bool brings, bool gets) = 0;

  // The collective is an average whose sum travels in a wider dtype; the caller divides its result. Returns true if
  // combine() makes the wide vector, false if it makes a vector still to be widened. Call before allocate().
  [[nodiscard]] virtual bool carry(engine::CarriedAverage const& carried) = 0;

  // Makes the vector from the tensors. Does not divide. Errors: GpuErrc.
  [[nodiscard]] virtual Status combine() = 0;
  [[nodiscard]] virtual std::span<std::byte const> combined() const = 0;

  // The block for the vector's result if it is memory of a tensor's next version; null: other memory.
  [[nodiscard]] virtual std::shared_ptr<tensors::Block> destination() const { return nullptr; }

  // Makes the next versions of the tensors from the vector, which it may overwrite. Errors: GpuErrc.
  [[nodiscard]] virtual Status spread(std::span<std::byte> result) = 0;
  [[nodiscard]] virtual HeldResult results() const = 0;
};

// True if the work is small enough for the control thread, and waits for no GPU.
[[nodiscard]] inline bool is_small(InputAdapter const& level) {
  return level.gpu() == nullptr && level.elements() * element_bytes(level.dtype()) <= Helper::at_once_bytes;
}

}  // namespace chorus::service
