// The ranks of a benchmark, as those see them who measure: one group of processes that do one task at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/bench/contest.hpp"
#include "worker/bench/fleet.hpp"
#include "worker/bench/orders.hpp"

namespace chorus::bench {

class Ranks {
 public:
  // Starts the processes and makes them know each other. Errors of all: those of Fleet.
  [[nodiscard]] static Result<Ranks> start(std::vector<std::string> const& arguments, std::uint32_t ranks);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] Status prepare(Task const& task);
  // Does the task that was prepared last, so many times; the slowest rank's times.
  [[nodiscard]] Result<Sample> iterate(plan::Spec const& spec, std::uint64_t iterations);
  // The same of all tensors of the task together, where there are several.
  [[nodiscard]] Result<Sample> iterate_fused(plan::Spec const& spec, std::uint64_t iterations);
  // The same, every call counted for metrics.
  [[nodiscard]] Result<Sample> iterate_counted(plan::Spec const& spec, std::uint64_t iterations);
  void finish() { fleet_.finish(); }

 private:
  Ranks(Fleet fleet, std::uint32_t size) : fleet_(std::move(fleet)), size_(size) {}
  [[nodiscard]] Result<Sample> iterate(std::string const& verb, plan::Spec const& spec, std::uint64_t iterations);

  Fleet fleet_;
  std::uint32_t size_;
};

}  // namespace chorus::bench
