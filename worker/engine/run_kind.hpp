// Runs that are alike, as those of a call that is made again and again: what was worked out for one serves the next.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "worker/engine/data_plane.hpp"

namespace chorus::engine {

class Run;

// What the next run of a kind has for itself. As of RunSpec.
struct RunCall {
  std::uint64_t run = 0;
  std::span<std::byte const> input;
  std::span<std::byte> output;
  std::chrono::steady_clock::time_point deadline;
};

// May be made, shared and let go of by any thread. Any number of its runs may be under way; of those that ended well
// one is kept to be used again, if it is small: a large one takes long enough, and keeps memory.
class RunKind {
 public:
  // Run, input, output and deadline of the spec count for nothing. No owner.
  explicit RunKind(RunSpec spec);
  ~RunKind();
  RunKind(RunKind const&) = delete;
  RunKind& operator=(RunKind const&) = delete;

  [[nodiscard]] RunSpec const& spec() const { return spec_; }
  [[nodiscard]] RunSpec of(RunCall const& call) const;

  // The engine's, on its thread. Null: none is kept.
  [[nodiscard]] std::unique_ptr<Run> take();
  void keep(std::unique_ptr<Run> run);

 private:
  RunSpec const spec_;
  std::unique_ptr<Run> kept_;
};

}  // namespace chorus::engine
