// The lower level of a collective on a worker that brings several tensors to it: what is done in this worker's memory
// before the worker takes part in the collective as one rank, and after.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "worker/service/held_result.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// Made and asked on the control thread; combine() and spread() run on any one thread at a time. Holds the tensors as
// they were, and memory for what they become.
class LowerLevel {
 public:
  LowerLevel() = default;
  virtual ~LowerLevel() = default;
  LowerLevel(LowerLevel const&) = delete;
  LowerLevel& operator=(LowerLevel const&) = delete;

  [[nodiscard]] virtual Dtype dtype() const = 0;
  [[nodiscard]] virtual std::uint64_t elements() const = 0;  // of the one vector that travels
  [[nodiscard]] virtual std::uint64_t version() const = 0;   // the sum of all
  [[nodiscard]] virtual std::vector<std::shared_ptr<tensors::Block const>> blocks() const = 0;  // of the tensors

  // What the ranks must agree on beside the vector's size, 0 if nothing; and in words, to stand behind the operation.
  [[nodiscard]] virtual std::uint64_t agreement() const = 0;
  [[nodiscard]] virtual std::string agreement_text() const = 0;

  // Where all of it is done, if not in the host's memory: then combine() and spread() wait for that GPU.
  [[nodiscard]] virtual devices::GpuUnit* gpu() const = 0;

  // Memory for what combine() makes of tensors that are brought, and spread() of a result. Errors:
  // TensorErrc::out_of_memory, GpuErrc.
  [[nodiscard]] virtual Status allocate(tensors::Pool& pool, bool brings, bool gets) = 0;

  // Makes the vector of the tensors. Divides nothing. Errors: GpuErrc.
  [[nodiscard]] virtual Status combine() = 0;
  [[nodiscard]] virtual std::span<std::byte const> combined() const = 0;

  // Where the vector's result lies, if that is memory of the tensors' next versions; null: beside them.
  [[nodiscard]] virtual std::shared_ptr<tensors::Block> destination() const { return nullptr; }

  // Makes the next versions of the tensors out of the vector, which it may write to. Errors: GpuErrc.
  [[nodiscard]] virtual Status spread(std::span<std::byte> result) = 0;
  [[nodiscard]] virtual HeldResult results() const = 0;
};

}  // namespace chorus::service
