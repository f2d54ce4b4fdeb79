// Runs a test on the double and on every real GPU. If there is no real GPU, prints the reason.
#pragma once

#include <cstdio>
#include <functional>

#include "worker/devices/cuda/testing/gpu_double.hpp"

namespace chorus::devices::testing {

inline void on_every_gpu(std::function<void(Gpu& gpu)> const& story) {
  GpuDouble stand_in;
  story(stand_in);
  auto const found = find_gpus();
  if (found.gpus.empty()) std::printf("skipped on a real GPU, run on the double: %s\n", found.why_none.c_str());
  for (auto const& gpu : found.gpus) story(*gpu);
}

}  // namespace chorus::devices::testing
