// Counts costs of an algorithm that do not depend on the network.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/plan/algorithm.hpp"

namespace chorus::planning {

// Cost for n bytes: alpha * latency + beta * n * seconds per byte + gamma * n * seconds per byte reduced. Each factor
// is the cost of the plan if only its term counts.
struct Formula {
  double alpha = 0;
  double beta = 0;
  double gamma = 0;
  friend bool operator==(Formula const&, Formula const&) = default;
};

// Returns text like "14 α + 1.75 nβ + 0.88 nγ", without zero terms.
[[nodiscard]] std::string to_text(Formula const& formula);

struct Measure {
  std::uint32_t steps = 0;  // rounds in which any rank sends
  double sent = 0;          // by the busiest rank, as a part of n
  Formula whole;            // messages that are one segment each
  Formula segmented;        // messages with very many segments
};

// Measures the plan of a spec, out of place, for a vector of even blocks. The algorithm accepts the spec.
[[nodiscard]] Measure measure(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::planning
