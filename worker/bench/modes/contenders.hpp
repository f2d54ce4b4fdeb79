// The plans that are measured for a task.
#pragma once

#include <string>
#include <vector>

#include "collectives/model/choice/select.hpp"
#include "worker/bench/ranks/options.hpp"
#include "worker/bench/ranks/orders.hpp"

namespace chorus::bench {

struct Contender {
  plan::Spec spec;
  double predicted_seconds = 0;
};

// "tree arity 4", "torus_2d shape 2,4", "ring": distinguishes the plans of an algorithm.
[[nodiscard]] std::string label(plan::Spec const& spec);

// One plan per algorithm that was asked for, as the model would run it; for "all" one per algorithm that can do the
// task. Not empty. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<Contender>> asked_contenders(Options const& options, Task const& task,
                                                              std::uint32_t ranks);

// First the choice of `auto`, then everything else that the model considered or that can do the task; each program
// once, because for few ranks many algorithms are the same. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<Contender>> all_contenders(Options const& options, Task const& task,
                                                            std::uint32_t ranks);

}  // namespace chorus::bench
