// What a plan moves, all ranks together.
#pragma once

#include <cstdint>

#include "collectives/core/result.hpp"
#include "worker/bench/ranks/orders.hpp"

namespace chorus::bench {

struct Traffic {
  std::uint64_t messages = 0;       // messages with bytes; others are not sent
  std::uint64_t wakes = 0;          // (receiver, round) pairs: data of one round may wake a receiver once
  std::uint64_t bytes = 0;          // of all messages
  std::uint64_t reduced_bytes = 0;  // received into a reduction, or reduced locally
};

// Errors: PlanErrc.
[[nodiscard]] Result<Traffic> traffic_of(plan::Spec const& spec, Task const& task);

}  // namespace chorus::bench
