// Ranks that call over shared memory, all in one thread; a seed decides which rank takes the next turn.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "worker/engine/shm/calls/shared_call.hpp"
#include "worker/engine/testing/cases/case.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine::testing {

struct SharedFleetOptions {
  std::uint32_t ranks = 2;
  bool in_arena = true;  // the vectors lie in the arena; otherwise in the test's own memory
  // Largest payload inside a record. Smaller than in production, so that payloads go both inside and outside of
  // records.
  std::uint32_t block_bytes = 64;
  std::uint32_t slot_bytes = 4096;
  std::uint64_t seed = 1;
};

class SharedFleet final : public Fleet {
 public:
  explicit SharedFleet(SharedFleetOptions options);
  ~SharedFleet() override;

  [[nodiscard]] std::uint32_t ranks() const override { return options_.ranks; }
  [[nodiscard]] Peer peer(plan::Rank rank) const override;
  // A rank makes one call after another.
  void start(plan::Rank rank, RunSpec spec, RunDone done) override;
  bool run_until(std::atomic<std::size_t> const& ended, std::size_t count) override;
  void let_move() override;

  [[nodiscard]] memory::Arena& arena(plan::Rank rank) { return *members_[rank]->arena; }

 private:
  struct Call {
    RunSpec spec;
    RunDone done;
    std::unique_ptr<SharedCall> call;
    std::span<std::byte> input, output;  // in the arena; empty if the test's own buffers are used
    bool begun = false;
  };
  struct Member {
    std::unique_ptr<memory::Arena> arena;
    std::span<std::byte> board;
    std::vector<std::unique_ptr<SharedLane>> lanes;
    std::deque<Call> calls;
    std::uint64_t made = 0;
  };

  bool take_turn(Member& member);
  void begin(Member& member, Call& call);
  void end(Member& member, Call& call, Status status);

  SharedFleetOptions const options_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace chorus::engine::testing
