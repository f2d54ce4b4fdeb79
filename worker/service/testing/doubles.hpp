// Workers with GPU doubles for tests, which can make the doubles fail.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/service/testing/live_worker.hpp"

namespace chorus::service::testing {

struct Doubles {
  devices::FoundGpus found;
  std::vector<devices::testing::GpuDouble*> gpus;  // valid as long as their worker lives
};

[[nodiscard]] inline Doubles make_doubles(std::uint32_t count) {
  constexpr std::uint64_t memory_bytes = 64 << 20;
  Doubles made;
  for (std::uint32_t index = 0; index < count; ++index) {
    auto gpu = std::make_unique<devices::testing::GpuDouble>(index, memory_bytes, index + 1);
    made.gpus.push_back(gpu.get());
    made.found.gpus.push_back(std::move(gpu));
  }
  return made;
}

class GpuWorker : public LiveWorker {
 public:
  explicit GpuWorker(std::uint32_t gpus = 1, WorkerOptions options = test_options())
      : GpuWorker(make_doubles(gpus), std::move(options)) {}

  [[nodiscard]] devices::testing::GpuDouble& gpu(std::size_t index = 0) { return *gpus_.at(index); }

 private:
  GpuWorker(Doubles doubles, WorkerOptions options)
      : LiveWorker(std::move(options), std::move(doubles.found)), gpus_(std::move(doubles.gpus)) {}

  std::vector<devices::testing::GpuDouble*> const gpus_;
};

}  // namespace chorus::service::testing
