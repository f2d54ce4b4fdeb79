// A cluster under work of every kind that is measured: collectives that succeed, fail and wait, a parameter server, a
// checkpoint.
#pragma once

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/parameters.hpp"
#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {

class Work {
 public:
  static constexpr std::size_t workers = 4;

  // A coordinator whose last life was ended by a kill, and four workers in two zones, of which one has no shared
  // memory.
  Work();

  // One round: every operation once, small and large, launched by REST and called at the workers; pushes and pulls.
  void round();
  // A barrier during which the last worker is stopped for a moment: all wait for it.
  void straggle();
  // The last worker stops: a collective fails because of it, and the group lacks a member.
  void stop_one();

  [[nodiscard]] std::vector<std::string> worker_urls();
  [[nodiscard]] Service& coordinator() { return cluster_.coordinator; }
  [[nodiscard]] Service& worker(std::size_t i) { return cluster_.worker(i); }
  // Ends what stop_one() has stopped, so that the rest can end.
  void end_stopped() { cluster_.kill_worker(workers - 1); }

 private:
  void collectives();
  void local_calls();
  void parameters();
  void intrude();

  ScratchDirectory directory_;
  Cluster cluster_;
  std::unique_ptr<ParameterClient> fast_, slow_;
  std::uint64_t clock_ = 0;
};

}  // namespace chorus::testing
