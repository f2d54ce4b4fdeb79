// GpuSession by CUDA: streams as queues, events as marks.
#pragma once

#include <memory>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices::cuda {

class Session : public GpuSession {
 public:
  // Makes the streams and events. Called first. Errors: as GpuSession.
  [[nodiscard]] virtual Status open() = 0;
};

// The GPU's info outlives the session.
[[nodiscard]] std::unique_ptr<Session> make_session(GpuInfo const& info);

}  // namespace chorus::devices::cuda
