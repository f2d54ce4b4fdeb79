// One collective of any operation on all ranks of a fleet, with inputs whose result is exact in any order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/plan/algorithm.hpp"
#include "worker/engine/data_plane.hpp"

namespace chorus::engine::testing {

// Memory of one tensor.
struct Buffer {
  std::shared_ptr<std::byte> owner;
  std::span<std::byte> bytes;
  std::byte* on_device = nullptr;  // address for the engine; null: host memory

  [[nodiscard]] std::span<std::byte> for_engine() const {
    return on_device != nullptr ? std::span(on_device, bytes.size()) : bytes;
  }
};

// The ranks of a test, which can run programs over some kind of link.
class Fleet {
 public:
  // Allocates a rank's input or output.
  [[nodiscard]] virtual Buffer allocate(plan::Rank rank, std::size_t bytes);
  // The GPU unit on which allocate() takes memory for this rank; null: host memory.
  [[nodiscard]] virtual devices::GpuUnit* gpu(plan::Rank) const { return nullptr; }
  [[nodiscard]] virtual std::uint32_t ranks() const = 0;
  [[nodiscard]] virtual Peer peer(plan::Rank rank) const = 0;
  virtual void start(plan::Rank rank, RunSpec spec, RunDone done) = 0;
  // Lets the fleet work until `ended` has reached `count` runs; false if nothing moves any more.
  virtual bool run_until(std::atomic<std::size_t> const& ended, std::size_t count) = 0;
  // The clock of the engines' deadlines.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const { return std::chrono::steady_clock::now(); }
  // Lets started runs go as far as they can, in fleets that know when nothing moves any more.
  virtual void let_move() {}
  virtual ~Fleet() = default;
};

// The collective that the ranks run, with its plan and its schedule.
struct Case {
  plan::Algorithm const* algorithm = nullptr;
  Op op = Op::all_reduce;
  plan::Rank root = 0;
  std::uint32_t arity = 2;
  plan::Shape shape;
  std::vector<plan::Rank> by_position;
  Dtype dtype = Dtype::f32;
  ReduceOp reduce = ReduceOp::sum;
  std::uint64_t elements = 0;  // of the whole vector; all_to_all: of the vector of each rank
  // Used instead, per block; all_to_all sends counts[(s + d) % p] from rank s to rank d.
  std::vector<std::uint64_t> counts;
  bool in_place = false;
  std::uint64_t segment_bytes = 262144;
  std::uint32_t window = 4;
  std::uint64_t run = 1;
  std::uint32_t epoch = 1;
  std::chrono::milliseconds timeout{30000};
};

[[nodiscard]] std::string to_string(Case const& c);

// One run of a case on all ranks of the fleet. The fleet outlives the collective. Runs that have not ended keep their
// memory.
class Collective {
 public:
  Collective(Fleet& fleet, Case c) : Collective(fleet, std::move(c), fleet.now()) {}
  Collective(Fleet& fleet, Case c, std::chrono::steady_clock::time_point now);

  [[nodiscard]] RunSpec& spec(plan::Rank rank) { return state_->specs[rank]; }  // may be changed before start

  void start(plan::Rank rank);
  void start();  // every rank
  // Starts every rank and waits for all of them; true if all ended.
  [[nodiscard]] bool run();
  [[nodiscard]] bool finish();  // waits for the ranks that were started

  [[nodiscard]] std::size_t ended() const { return state_->ended; }
  [[nodiscard]] RunResult const& result(plan::Rank rank) const { return *state_->results[rank]; }
  [[nodiscard]] bool has_ended(plan::Rank rank) const { return state_->results[rank].has_value(); }

  // Returns "" or a message that names the wrong rank and the difference.
  [[nodiscard]] std::string wrong() const;
  [[nodiscard]] std::string wrong(plan::Rank rank) const;

 private:
  Fleet& fleet_;
  Case const case_;
  struct State {
    std::vector<RunSpec> specs;
    std::vector<Buffer> inputs, outputs;  // in place the outputs hold the inputs, too
    std::vector<std::optional<RunResult>> results;
    std::atomic<std::size_t> ended{0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  struct Expected {
    std::uint64_t offset = 0;  // bytes in the rank's output
    std::vector<std::byte> bytes;
  };
  std::vector<Expected> expected_;  // by rank
  std::size_t started_ = 0;
};

}  // namespace chorus::engine::testing
