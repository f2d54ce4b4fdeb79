// Options for runs that fail after a short timeout, on a network that delays and splits the bytes.
#pragma once

#include <cstdint>

#include "worker/engine/testing/loopback_fleet.hpp"

namespace chorus::engine::testing {

inline FleetOptions options_of(std::uint32_t ranks, std::uint64_t seed = 1) {
  FleetOptions options;
  options.ranks = ranks;
  options.network = {seed, 5000, 2000};
  options.eager_bytes = 1024;
  return options;
}

inline Case case_of(plan::Algorithm const& algorithm, std::uint64_t elements = 3000, std::uint64_t run = 1) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.segment_bytes = 1024;
  c.run = run;
  c.timeout = std::chrono::milliseconds(1000);
  return c;
}

inline EngineErrc code_of(RunResult const& result) {
  return static_cast<EngineErrc>(result.status.error().code.value());
}

}  // namespace chorus::engine::testing
