// The progress of a run on this rank while it runs, and the ranks that it waits for.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/plan/instruction.hpp"
#include "worker/links/frames/inquiry.hpp"

namespace chorus::engine {

// An instruction that is allowed to go on and is not done.
struct Standing {
  std::uint32_t instruction = 0;  // number in the program
  plan::Opcode op = plan::Opcode::send;
  plan::Rank peer = 0;
  std::uint32_t message = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes = 0;
};

// A rank that the run waits for.
struct Awaited {
  plan::Rank rank = 0;
  std::string worker;
  std::string where;  // "receiving message 2 of 6 (step 7 of 12)"
  links::Suspicion suspicion = links::Suspicion::nobody;
  std::chrono::microseconds lasting{0};  // how long the suspicion has been the same
};

struct RunProgress {
  static constexpr std::size_t standing_max = 16;

  std::uint64_t run = 0;
  std::string group;
  std::uint32_t epoch = 0;
  std::string description;  // as in RunSpec
  plan::Rank rank = 0;
  std::uint32_t ranks = 0;
  double seconds = 0;        // since it began here
  double still_seconds = 0;  // since the last byte moved, as seen by the last checks
  std::uint32_t steps_done = 0;
  std::uint32_t steps = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::vector<Standing> standing;    // in the order of the program, the first standing_max
  std::vector<Awaited> waiting_for;  // one entry per rank
};

}  // namespace chorus::engine
