// Derives the costs of messages and bytes from the times of collectives.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "worker/bench/ranks/orders.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {

// One way to do a task, and its result.
struct Observation {
  plan::Spec spec;
  Task task;
  Sample sample;
};

struct Found {
  double alpha_s = 0;
  double beta_s_per_byte = 0;
  double message_cpu_s = 0;
  double byte_cpu_s = 0;
  double call_cpu_s = 0;  // of a core, per rank, for any algorithm
  double error = 0;       // median relative error of these constants for what was measured
};

class Measurements {
 public:
  // Cost of a reduction per byte, cost of waking a thread, and number of cores that the ranks share.
  Measurements(double gamma_s_per_byte, double wake_s, double cores)
      : gamma_(gamma_s_per_byte), wake_s_(wake_s), cores_(cores) {}

  // For two ranks with a core each: a broadcast is one message, an all_reduce one in each direction. It takes call +
  // messages * (alpha + bytes * beta).
  void add_pair(Observation const& seen);

  // For more ranks. All cores together spend ranks * call_cpu + message_cpu at both ends of every message + byte_cpu
  // for every byte and, if there are more ranks than cores, wake for every receiver in every round. In that case, if
  // the vector is short, the ranks are also done after call + that / cores + (messages that wait for each other) *
  // (alpha + wake). Calls have a time that depends on the number of ranks. Errors: PlanErrc.
  [[nodiscard]] Status add_group(Observation const& seen);

  // Call after adding at least one of each kind, of several sizes.
  [[nodiscard]] Found fit() const;

 private:
  enum Unknown : std::size_t { alpha, beta, call_cpu, message_cpu, byte_cpu, first_call };
  struct Line {
    std::array<double, first_call> coefficients{};
    std::uint32_t call_of = 0;  // ranks; 0: none
    double seconds = 0;
  };
  void add(Line line);

  double const gamma_, wake_s_, cores_;
  std::vector<Line> lines_;
};

}  // namespace chorus::bench
