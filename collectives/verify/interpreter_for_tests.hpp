// Interpreter: runs the programs of all ranks on integers, in one thread. It tests the verifier and the segmentation
// independently of the engine.
//
// It shares only Program, Sizes and Layout with the engine. Every message is a rendezvous. The reduction is avg over
// integers, so that a missing or doubled `final` changes the result.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/sizes.hpp"

namespace chorus::verify {

class Interpreter {
 public:
  using Numbers = std::vector<std::int64_t>;

  // `programs` must outlive it.
  explicit Interpreter(std::span<plan::Program const> programs);

  // Runs the rounds in order. `inputs` and `sizes` are per rank; an input has the elements of plan::holding. Returns
  // false if instructions are left that can never run.
  [[nodiscard]] bool run(std::vector<Numbers> const& inputs, std::vector<plan::Sizes> const& sizes);
  // Likewise, but in a random order of segments that the dependencies allow. Every instruction has `segments` segments.
  [[nodiscard]] bool run_shuffled(std::vector<Numbers> const& inputs, std::vector<plan::Sizes> const& sizes,
                                  std::uint32_t segments, std::uint32_t seed);

  // The rank's own elements of a buffer after a run. In place the input is overwritten.
  [[nodiscard]] Numbers input(plan::Rank rank) const;
  [[nodiscard]] Numbers output(plan::Rank rank) const;

 private:
  // A message or a local instruction, of which one segment runs at a time.
  struct Action {
    plan::Rank rank, peer;  // equal for a local instruction
    std::uint32_t instruction, peer_instruction;
    std::uint32_t round;
  };

  void start(std::vector<Numbers> const& inputs, std::vector<plan::Sizes> const& sizes, std::uint32_t segments);
  bool sweep(std::uint32_t segments_at_once);
  [[nodiscard]] bool may_run(plan::Rank rank, std::uint32_t instruction);
  void run_segment(Action const& action);
  [[nodiscard]] std::size_t buffer(plan::Rank rank, plan::Buffer which) const;
  [[nodiscard]] plan::Layout const& layout(plan::Rank rank, plan::Buffer which) const;
  [[nodiscard]] Numbers held(plan::Rank rank, plan::Buffer which) const;
  std::uint32_t& done(plan::Rank rank, std::uint32_t instruction) { return done_[begin_[rank] + instruction]; }

  std::span<plan::Program const> programs_;
  std::vector<Action> actions_;  // by round
  std::vector<Action> left_;
  std::vector<plan::Layouts> layouts_;  // per rank
  std::uint32_t segments_ = 1;
  std::vector<Numbers> buffers_;     // three per rank, each with room for whole vectors
  std::vector<std::size_t> begin_;   // per rank: its first instruction in done_
  std::vector<std::uint32_t> done_;  // in segments
};

}  // namespace chorus::verify
