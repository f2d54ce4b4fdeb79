// The local copies and reductions of a run, done by its GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/program/run_state.hpp"

namespace chorus::engine {

// The state and the work outlive the object.
class GpuSteps final : private DeviceClient {
 public:
  GpuSteps(RunState& state, DeviceWork& device)
      : state_(state), device_(device), is_queued_(state.program.instructions.size()) {}

  // Instruction i can go on: queues all of it that is ready, one piece at a time.
  void go_on(std::uint32_t i) {
    auto const bytes = state_.board.ready(i) - state_.board.done(i);
    if (bytes == 0 || is_queued_[i]) return;
    is_queued_[i] = true;
    device_.work(i, {i, bytes, 0, false}, *this);
  }

 private:
  void device_did(DevicePiece const& piece) override {
    auto const i = piece.number;
    is_queued_[i] = false;
    state_.board.advance(i, piece.bytes);
    if (state_.board.is_under_way(i)) state_.board.wake(i);
  }

  RunState& state_;
  DeviceWork& device_;
  std::vector<bool> is_queued_;
};

}  // namespace chorus::engine
