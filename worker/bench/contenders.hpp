// Which plans are measured for a task.
#pragma once

#include <string>
#include <vector>

#include "collectives/model/select.hpp"
#include "worker/bench/options.hpp"
#include "worker/bench/orders.hpp"

namespace chorus::bench {

struct Contender {
  plan::Spec spec;
  double predicted_seconds = 0;
};

// "tree arity 4", "torus_2d shape 2,4", "ring": what makes it another plan than the algorithm's other ones.
[[nodiscard]] std::string label(plan::Spec const& spec);

// One for each algorithm that was asked for, as the model would run it; of "all" for each that can do the task. Not
// empty. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<Contender>> asked_contenders(Options const& options, Task const& task,
                                                              std::uint32_t ranks);

// First what `auto` takes, then everything else that the model looked at or that can do the task, each program once:
// for few ranks many algorithms are the same. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<Contender>> all_contenders(Options const& options, Task const& task,
                                                            std::uint32_t ranks);

}  // namespace chorus::bench
