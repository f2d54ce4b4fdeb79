// From what collectives took to what messages and bytes take.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "worker/bench/contest.hpp"
#include "worker/bench/orders.hpp"

namespace chorus::bench {

// One way to do something, and what came out.
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
  double call_cpu_s = 0;  // of a core, for every rank, whatever the algorithm
  double error = 0;       // the median of how far, relatively, what was measured is from what these say
};

class Measurements {
 public:
  // What a reduction takes per byte, what it takes to wake a thread, and how many cores the ranks share.
  Measurements(double gamma_s_per_byte, double wake_s, double cores)
      : gamma_(gamma_s_per_byte), wake_s_(wake_s), cores_(cores) {}

  // Of two ranks, which have a core each: a broadcast is one message, an all_reduce one there and one back. It takes
  // call + messages * (alpha + bytes * beta).
  void add_pair(Observation const& seen);

  // Of more ranks. They take ranks * call_cpu + at both ends of every message message_cpu and of every byte byte_cpu,
  // of all cores together; and if there are more ranks than cores, also wake for every receiver in every round, and
  // they are done after call + that / cores + messages that wait for each other * (alpha + wake), if the vector is
  // short. Calls take a time of their own that depends on the number of ranks. Errors: PlanErrc.
  [[nodiscard]] Status add_group(Observation const& seen);

  // At least one of each was added, of several sizes.
  [[nodiscard]] Found fit() const;

 private:
  enum Unknown : std::size_t { alpha, beta, call_cpu, message_cpu, byte_cpu, first_call };
  struct Line {
    std::array<double, first_call> coefficients{};
    std::uint32_t call_of = 0;  // ranks; 0: there is none
    double seconds = 0;
  };
  void add(Line line);

  double const gamma_, wake_s_, cores_;
  std::vector<Line> lines_;
};

}  // namespace chorus::bench
