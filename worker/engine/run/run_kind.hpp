// Runs of the same kind, such as those of a repeated call: preparations for one serve the next.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "worker/engine/program/run_spec.hpp"

namespace chorus::engine {

class Run;

// What is particular to one run of a kind. Fields as in RunSpec.
struct RunCall {
  std::uint64_t run = 0;
  std::span<std::byte const> input;
  std::span<std::byte> output;
  std::chrono::steady_clock::time_point deadline;
  std::optional<links::Envelope> envelope = std::nullopt;
};

// Any thread may create, share and release a kind. Any number of its runs may be under way. One that ended well is kept
// for the next call if it is small; a large run takes long enough anyway, and would keep memory.
class RunKind {
 public:
  // Run, input, output, deadline and envelope of the spec are ignored; the owner is null.
  explicit RunKind(RunSpec spec);
  ~RunKind();
  RunKind(RunKind const&) = delete;
  RunKind& operator=(RunKind const&) = delete;

  [[nodiscard]] RunSpec const& spec() const { return spec_; }
  [[nodiscard]] RunSpec of(RunCall const& call) const;

  // For the engine, on the data thread. Null: no run is kept.
  [[nodiscard]] std::unique_ptr<Run> take();
  void keep(std::unique_ptr<Run> run);

 private:
  RunSpec const spec_;
  std::unique_ptr<Run> kept_;
};

}  // namespace chorus::engine
