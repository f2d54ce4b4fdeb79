// Runs an Exchange whose messages are inside their records: no step is ever half done, and most of the state that a
// call has per step is not needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/shm/calls/call_buffers.hpp"
#include "worker/engine/shm/calls/call_channels.hpp"
#include "worker/engine/shm/calls/shared_exchange.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/engine/shm/calls/step_arithmetic.hpp"

namespace chorus::engine {

// Of one kind of call, used for one call after another. One thread at a time.
class ExchangeCall {
 public:
  // All but the plan outlive the object.
  ExchangeCall(Exchange plan, CallBuffers const& buffers, CallChannels& channels, StepArithmetic& arithmetic);

  // Begins a call. Every buffer is in one piece.
  void begin() { sent_ = 0; }
  // Does what is possible now: first sends everything, then waits. Nothing: a message does not fit into a record, or
  // has not come whole, and the call goes on step by step; the first sent() messages have been sent.
  [[nodiscard]] std::optional<CallTurn> turn();

  [[nodiscard]] Exchange const& plan() const { return plan_; }
  [[nodiscard]] std::size_t sent() const { return sent_; }
  // After a turn that waits: the lane whose record is awaited.
  [[nodiscard]] SharedLane const* awaited() const { return awaited_; }
  [[nodiscard]] Failure const& failure() const { return failure_; }  // after CallTurn::failed

 private:
  [[nodiscard]] std::optional<CallTurn> send();
  [[nodiscard]] std::byte* at(Exchange::Place const& place) const { return buffers_.base(place.buffer) + place.at; }

  Exchange const plan_;
  CallBuffers const& buffers_;
  CallChannels& channels_;
  StepArithmetic& arithmetic_;
  std::vector<std::byte const*> sources_;
  std::vector<std::byte*> destinations_;
  std::size_t sent_ = 0;  // messages
  SharedLane const* awaited_ = nullptr;
  Failure failure_;
};

}  // namespace chorus::engine
