// Proves that partial sums may be kept for a part of their range at a time. The instruction that begins a partial sum
// then waits for the instruction that ends it, and other instructions wait for the message that the former receives.
//
// The proof uses a graph of waits: an instruction waits for its dependencies, both ends of a message for each other,
// and the start of a partial sum for its end. The last kind of waits closes cycles. If all waits of a cycle are segment
// by segment, there is an order nevertheless: all instructions of the cycle have the same length, a segment waits for
// no later segment, and segments of one place are ordered without the last kind of waits. So no instruction waits for
// ever.
#include <algorithm>
#include <limits>
#include <vector>

#include "collectives/plan/matching.hpp"
#include "collectives/plan/partial_sums.hpp"
#include "collectives/verify/parts.hpp"

namespace chorus::verify {
namespace {

using plan::Endpoint, plan::Program;

constexpr auto unseen = std::numeric_limits<std::uint32_t>::max();

// Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972), without recursion.
class Cycles {
 public:
  // The edges from `node` are to[begin[node]] up to to[begin[node + 1]].
  Cycles(std::vector<std::size_t> const& begin, std::vector<std::uint32_t> const& to)
      : begin_(begin), to_(to), seen_(begin.size() - 1, unseen), low_(seen_), component_(seen_) {
    for (std::uint32_t node = 0; node < seen_.size(); ++node)
      if (seen_[node] == unseen) search_from(node);
  }

  // Returns true if a cycle leads through both.
  [[nodiscard]] bool join(std::uint32_t a, std::uint32_t b) const { return component_[a] == component_[b]; }

 private:
  void search_from(std::uint32_t root) {
    struct Visit {
      std::uint32_t node;
      std::size_t edge;
    };
    std::vector<Visit> path;
    auto const enter = [&](std::uint32_t node) {
      seen_[node] = low_[node] = next_++;
      open_.push_back(node);
      path.push_back({node, begin_[node]});
    };
    enter(root);
    while (!path.empty()) {
      auto& [node, edge] = path.back();
      if (edge < begin_[node + 1]) {
        auto const to = to_[edge++];
        if (seen_[to] == unseen)
          enter(to);
        else if (component_[to] == unseen)
          low_[node] = std::min(low_[node], seen_[to]);
        continue;
      }
      auto const done = node;
      path.pop_back();
      if (!path.empty()) low_[path.back().node] = std::min(low_[path.back().node], low_[done]);
      if (low_[done] == seen_[done]) close(done);
    }
  }

  void close(std::uint32_t node) {
    for (auto last = unseen; last != node;) {
      last = open_.back();
      open_.pop_back();
      component_[last] = node;
    }
  }

  std::vector<std::size_t> const& begin_;
  std::vector<std::uint32_t> const& to_;
  std::vector<std::uint32_t> seen_, low_;
  std::vector<std::uint32_t> component_;  // per node: one node of its component
  std::vector<std::uint32_t> open_;
  std::uint32_t next_ = 0;
};

struct Wait {
  std::uint32_t from, to;
};

class LockStep {
 public:
  explicit LockStep(std::span<Program const> programs) : programs_(programs) {
    std::uint32_t instructions = 0;
    for (auto const& program : programs) {
      first_.push_back(instructions);
      instructions += static_cast<std::uint32_t>(program.instructions.size());
    }
    begin_.resize(std::size_t{instructions} + 1);
  }

  std::string check() {
    if (auto wrong = add_partial_sums(); !wrong.empty()) return wrong;
    if (waits_.empty()) return {};  // then check_execution() has proved enough
    add_messages();
    for (auto const& program : programs_)
      for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
        for (auto const& dependency : program.dependencies_of(i))
          waits_.push_back({at({program.rank, dependency.instruction}), at({program.rank, i})});
    sort_waits();
    return look_for_wholes(Cycles(begin_, to_));
  }

 private:
  [[nodiscard]] std::uint32_t at(Endpoint end) const { return first_[end.rank] + end.instruction; }

  std::string add_partial_sums() {
    for (auto const& program : programs_)
      for (auto const& sum : plan::partial_sums(program)) {
        if (program.instructions[sum.front()].has_wide_operand())
          return where(program, sum.front()) + ": takes a wide partial sum that another one has taken";
        if (program.instructions[sum.back()].has_wide_result())
          return where(program, sum.back()) + ": leaves a wide partial sum that nobody takes";
        waits_.push_back({at({program.rank, sum.back()}), at({program.rank, sum.front()})});
      }
    return {};
  }

  void add_messages() {
    plan::Matching const matching(programs_);
    for (std::size_t m = 0; m < matching.messages(); ++m) {
      auto const sender = at(matching.sender(m)), receiver = at(matching.receiver(m));
      waits_.push_back({sender, receiver});
      waits_.push_back({receiver, sender});
    }
  }

  void sort_waits() {
    for (auto const& wait : waits_) ++begin_[wait.from + 1];
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    to_.resize(waits_.size());
    auto next = begin_;
    for (auto const& wait : waits_) to_[next[wait.from]++] = wait.to;
  }

  [[nodiscard]] std::string look_for_wholes(Cycles const& cycles) const {
    for (auto const& program : programs_)
      for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
        for (auto const& [before, segmentwise] : program.dependencies_of(i))
          if (!segmentwise && cycles.join(at({program.rank, before}), at({program.rank, i})))
            return where(program, i) + ": waits for the whole of instruction " + std::to_string(before) +
                   ", which waits for it where partial sums are kept part by part";
    return {};
  }

  std::span<Program const> programs_;
  std::vector<std::uint32_t> first_;  // per rank: the node of its first instruction
  std::vector<Wait> waits_;
  std::vector<std::size_t> begin_;  // per node: its first edge in to_
  std::vector<std::uint32_t> to_;
};

}  // namespace

std::string check_lock_step(std::span<Program const> programs) { return LockStep(programs).check(); }

}  // namespace chorus::verify
