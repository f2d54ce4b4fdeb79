#include "worker/engine/program/local_collective.hpp"

#include <algorithm>
#include <deque>

#include "collectives/core/assert.hpp"
#include "collectives/plan/matching.hpp"
#include "worker/engine/program/scoreboard.hpp"

namespace chorus::engine {
namespace {

using plan::Endpoint;
using plan::Opcode;

// Bytes moved at a time: few enough for the next instruction to find them in the processor's cache.
constexpr std::uint64_t piece_bytes = 128 * 1024;
// Memory for the partial sums of all ranks together.
constexpr std::uint64_t partials_bytes = 8 << 20;

class LocalCollective {
 public:
  LocalCollective(std::span<plan::Program const> programs, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
                  std::span<LocalBuffers const> buffers, std::optional<Average> average)
      : programs_(programs), matching_(programs) {
    for (std::size_t r = 0; r < programs.size(); ++r) {
      workspaces_.emplace_back(programs[r], dtype, reduce, sizes,
                               PartialsLimit{partials_bytes / programs.size(), piece_bytes}, buffers[r].input,
                               buffers[r].output, average);
      boards_.emplace_back(programs[r], workspaces_.back().total_bytes(), workspaces_.back().flow_limits());
    }
  }

  void run() {
    auto const is_idle = [](Scoreboard const& board) { return board.idle(); };
    while (!std::all_of(boards_.begin(), boards_.end(), is_idle))
      for (plan::Rank rank = 0; rank < programs_.size(); ++rank)
        while (auto const i = boards_[rank].next()) go_on({rank, *i});
    for (auto const& board : boards_) CHORUS_ASSERT(board.finished(), "a right plan runs to its end");
  }

 private:
  void go_on(Endpoint at) {
    auto const& instruction = programs_[at.rank].instructions[at.instruction];
    if (instruction.op == Opcode::send || instruction.receives()) {
      auto const message = matching_.message(at.rank, instruction);
      return transfer(matching_.sender(message), matching_.receiver(message), at);
    }
    auto& board = boards_[at.rank];
    auto const ready = board.ready(at.instruction) - board.done(at.instruction);
    auto const bytes = std::min(ready, piece_bytes);
    if (bytes == 0) return;
    workspaces_[at.rank].work(at.instruction, bytes);
    board.advance(at.instruction, bytes);
    if (bytes < ready) board.wake(at.instruction);
  }

  // Both ends advance together, so the ready bytes of both count from the same byte.
  void transfer(Endpoint from, Endpoint to, Endpoint woken) {
    auto &sender = boards_[from.rank], &receiver = boards_[to.rank];
    auto const ready = std::min(sender.ready(from.instruction), receiver.ready(to.instruction));
    auto const left = ready - std::min(ready, sender.done(from.instruction));
    for (auto bytes = std::min(left, piece_bytes); bytes > 0;) {
      auto const source = workspaces_[from.rank].source(from.instruction, bytes);
      workspaces_[to.rank].take_in(to.instruction, source);
      workspaces_[from.rank].skip_source(from.instruction, source.size());
      sender.advance(from.instruction, source.size());
      receiver.advance(to.instruction, source.size());
      bytes -= source.size();
    }
    if (left > piece_bytes) boards_[woken.rank].wake(woken.instruction);
  }

  std::span<plan::Program const> programs_;
  plan::Matching matching_;
  std::deque<Workspace> workspaces_;
  std::deque<Scoreboard> boards_;
};

}  // namespace

void run_local_collective(std::span<plan::Program const> programs, Dtype dtype, ReduceOp reduce,
                          plan::Sizes const& sizes, std::span<LocalBuffers const> buffers,
                          std::optional<Average> average) {
  LocalCollective(programs, dtype, reduce, sizes, buffers, average).run();
}

}  // namespace chorus::engine
