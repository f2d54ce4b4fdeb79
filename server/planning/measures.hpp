// What an algorithm costs in numbers that hold for every network: counted, not quoted.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/plan/algorithm.hpp"

namespace chorus::planning {

// alpha * latency + beta * n * seconds per byte + gamma * n * seconds per byte reduced, for n bytes. Each of the three
// is what the plan costs where only that counts.
struct Formula {
  double alpha = 0;
  double beta = 0;
  double gamma = 0;
  friend bool operator==(Formula const&, Formula const&) = default;
};

// "14 α + 1.75 nβ + 0.88 nγ", without what is zero.
[[nodiscard]] std::string to_text(Formula const& formula);

struct Measure {
  std::uint32_t steps = 0;  // rounds in which somebody sends
  double sent = 0;          // by the busiest rank, as a part of n
  Formula whole;            // messages that are one segment each
  Formula segmented;        // messages of very many segments
};

// Of the plan of a spec, out of place, for a vector of even blocks. The algorithm accepts the spec.
[[nodiscard]] Measure measure(plan::Algorithm const& algorithm, plan::Spec const& spec);

}  // namespace chorus::planning
