// The ranks of a benchmark as a group of processes that do one task at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/bench/ranks/fleet.hpp"
#include "worker/bench/ranks/orders.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {

class Ranks {
 public:
  // Starts the processes and connects them. Errors of all: those of Fleet.
  [[nodiscard]] static Result<Ranks> start(std::vector<std::string> const& arguments, std::uint32_t ranks);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] Status prepare(Task const& task);
  // Runs the task that was prepared last `iterations` times; returns the slowest rank's times.
  [[nodiscard]] Result<Sample> iterate(plan::Spec const& spec, std::uint64_t iterations);
  // iterate() with all tensors of the task in one call, if there are several.
  [[nodiscard]] Result<Sample> iterate_fused(plan::Spec const& spec, std::uint64_t iterations);
  // iterate() with every call counted for metrics.
  [[nodiscard]] Result<Sample> iterate_counted(plan::Spec const& spec, std::uint64_t iterations);
  void finish() { fleet_.finish(); }

 private:
  Ranks(Fleet fleet, std::uint32_t size) : fleet_(std::move(fleet)), size_(size) {}
  [[nodiscard]] Result<Sample> iterate(std::string const& verb, plan::Spec const& spec, std::uint64_t iterations);

  Fleet fleet_;
  std::uint32_t size_;
};

}  // namespace chorus::bench
