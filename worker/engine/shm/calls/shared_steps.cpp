#include "worker/engine/shm/calls/shared_steps.hpp"

#include <algorithm>
#include <limits>

#include "collectives/core/assert.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::engine {
namespace {

using plan::Buffer;
using plan::Instruction;
using plan::Opcode;

constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

struct Slice {
  Buffer buffer;
  std::uint32_t chunk, chunks, stride;
  friend bool operator==(Slice const&, Slice const&) = default;

  [[nodiscard]] std::uint64_t end() const { return std::uint64_t{chunk} + std::uint64_t{chunks - 1} * stride + 1; }
  // True if the slices may have a chunk in common.
  [[nodiscard]] bool touches(Slice const& other) const {
    return buffer == other.buffer && chunk < other.end() && other.chunk < end();
  }
};

Slice source_of(Instruction const& i) { return {i.src, i.src_chunk, i.chunks, i.stride}; }
Slice destination_of(Instruction const& i) { return {i.dst, i.dst_chunk, i.chunks, i.stride}; }

bool reads(Instruction const& i, Slice const& slice) {
  return (i.reads_src() && source_of(i).touches(slice)) || (i.op == Opcode::reduce && destination_of(i).touches(slice));
}
bool writes(Instruction const& i, Slice const& slice) { return i.writes_dst() && destination_of(i).touches(slice); }

// Instructions that become one step, at the place of the last one of the chain.
struct Joined {
  std::vector<std::uint32_t> chain;   // each adds to the same range; or one send
  std::vector<std::uint32_t> copies;  // of the range
  std::vector<std::uint32_t> sends;   // of the range, or of a copy

  [[nodiscard]] std::uint32_t place() const { return chain.back(); }
};

class Compiler {
 public:
  Compiler(plan::Program const& program, Addresses const& addresses, Dtype dtype)
      : program_(program), addresses_(addresses), keeps_wide_(devices::is_summed_in_f32(dtype)) {
    channel_of_.assign(program.spec.ranks, nowhere);
    for (std::uint32_t c = 0; c < program.channels.size(); ++c) channel_of_[program.channels[c].peer] = c;
    totals_ = addresses.total_bytes();
  }

  void join(bool fuses) {
    joined_.clear();
    group_of_.assign(count(), nowhere);
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (group_of_[i] != nowhere) continue;
      Joined joined;
      joined.chain.push_back(i);
      if (fuses && at(i).writes_dst()) extend(joined);
      for (auto const* part : {&joined.chain, &joined.copies, &joined.sends})
        for (auto const j : *part) group_of_[j] = static_cast<std::uint32_t>(joined_.size());
      joined_.push_back(std::move(joined));
    }
    order_.resize(joined_.size());
    for (std::uint32_t g = 0; g < order_.size(); ++g) order_[g] = g;
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return joined_[a].place() < joined_[b].place(); });
    position_.resize(order_.size());
    for (std::uint32_t s = 0; s < order_.size(); ++s) position_[order_[s]] = s;
  }

  // Every dependency points backwards, and the messages of every channel keep their order.
  [[nodiscard]] bool is_sound() const {
    for (std::uint32_t i = 0; i < count(); ++i)
      for (auto const& dependency : program_.dependencies_of(i))
        if (position_[group_of_[dependency.instruction]] > position_[group_of_[i]]) return false;
    std::vector<std::uint32_t> sent(program_.channels.size()), received(program_.channels.size());
    for (auto const g : order_) {
      auto const in_order = [&](std::vector<std::uint32_t> const& part) {
        return std::all_of(part.begin(), part.end(), [&](std::uint32_t i) {
          if (at(i).op == Opcode::send) return sent[channel_of_[at(i).peer]]++ == at(i).message;
          return !at(i).receives() || received[channel_of_[at(i).peer]]++ == at(i).message;
        });
      };
      if (!in_order(joined_[g].chain) || !in_order(joined_[g].sends)) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<Step> steps() const {
    std::vector<Step> result;
    for (auto const g : order_) result.push_back(step_of(joined_[g]));
    return result;
  }

 private:
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(program_.instructions.size()); }
  [[nodiscard]] Instruction const& at(std::uint32_t i) const { return program_.instructions[i]; }

  // True if j adds to the result of `before` in `range`, as if nothing were rounded between them. The sum may move to
  // another place if nothing reads it at the old one.
  [[nodiscard]] bool continues(std::uint32_t j, Instruction const& before, Slice const& range) const {
    auto const& next = at(j);
    bool const moves_on = next.op == Opcode::recv_reduce && source_of(next) == range && destination_of(next) != range;
    bool const adds = (next.op == Opcode::recv_reduce && source_of(next) == range) ||
                      (next.op == Opcode::reduce && destination_of(next) == range && !source_of(next).touches(range));
    bool const is_sum = before.adds();
    if (!adds || (keeps_wide_ && is_sum && !(before.has_wide_result() && next.has_wide_operand()))) return false;
    return !moves_on || (range.buffer == Buffer::scratch && !is_read_after(j, range));
  }

  [[nodiscard]] bool is_read_after(std::uint32_t i, Slice const& range) const {
    for (auto j = i + 1; j < count(); ++j)
      if (reads(at(j), range)) return true;
    return false;
  }

  // True if i overwrites memory that this rank sends. Received messages of the same step would then be read only after
  // peers have read this rank's messages, and two ranks could wait for each other.
  [[nodiscard]] bool overwrites_messages(std::uint32_t i) const {
    auto const dependencies = program_.dependencies_of(i);
    return at(i).writes_dst() && std::any_of(dependencies.begin(), dependencies.end(), [&](auto const& dependency) {
             return at(dependency.instruction).op == Opcode::send;
           });
  }

  void extend(Joined& joined) const {
    auto const first = joined.chain.front();
    auto range = destination_of(at(first));
    std::vector<std::uint32_t> peers;
    if (at(first).receives()) peers.push_back(at(first).peer);
    auto j = first + 1;
    for (; j < count(); ++j) {
      auto const& next = at(j);
      if (group_of_[j] != nowhere) continue;
      bool const is_new_peer = !next.receives() || std::find(peers.begin(), peers.end(), next.peer) == peers.end();
      bool const waits_longer = !peers.empty() && overwrites_messages(j);
      if (is_new_peer && !waits_longer && continues(j, at(joined.chain.back()), range)) {
        joined.chain.push_back(j);
        range = destination_of(next);
        if (next.receives()) peers.push_back(next.peer);
      } else if (reads(next, range) || writes(next, range)) {
        break;
      }
    }
    if (at(joined.chain.back()).has_wide_result() && keeps_wide_) return;
    std::vector<Slice> held{range};
    for (; j < count(); ++j) {
      auto const& next = at(j);
      if (group_of_[j] != nowhere) continue;
      bool const is_held = next.reads_src() && std::find(held.begin(), held.end(), source_of(next)) != held.end();
      if (next.op == Opcode::send && is_held) {
        joined.sends.push_back(j);
      } else if (next.op == Opcode::copy && is_held && source_of(next) == range && !next.is_final() &&
                 (peers.empty() || !overwrites_messages(j))) {
        joined.copies.push_back(j);
        held.push_back(destination_of(next));
      } else if (std::any_of(held.begin(), held.end(), [&](Slice const& s) { return writes(next, s); })) {
        break;
      }
    }
  }

  [[nodiscard]] Range range_of(Slice const& slice, bool wide) const {
    Range range;
    range.wide = wide && keeps_wide_;
    for (auto left = slice; left.chunks != 0;) {
      auto const piece = addresses_.piece(left.buffer, left.chunk, left.stride == 1 ? left.chunks : 1);
      if (piece.bytes != 0) range.pieces.push_back({left.buffer, piece.at, piece.bytes});
      left.chunk += piece.chunks * left.stride;
      left.chunks -= piece.chunks;
    }
    return range;
  }

  [[nodiscard]] MessageName message_of(Instruction const& i) const { return {channel_of_[i.peer], i.message}; }

  // True if nothing outside the group reads the range before it is overwritten.
  [[nodiscard]] bool is_only_passed_on(Joined const& joined, Slice const& range) const {
    if (range.buffer != Buffer::scratch || joined.copies.empty()) return false;
    for (std::uint32_t i = joined.place() + 1; i < count(); ++i)
      if (group_of_[i] != group_of_[joined.place()] && reads(at(i), range)) return false;
    return true;
  }

  void add_operands(Step& step, Joined const& joined) const {
    auto const& chain = joined.chain;
    for (auto const i : chain) {
      auto const& instruction = at(i);
      bool const is_first = step.operands.empty();
      bool const wide = instruction.has_wide_operand();
      auto const local = [&](Slice const& slice, bool is_wide, bool is_partial) {
        step.operands.push_back({std::nullopt, range_of(slice, is_wide), is_partial});
      };
      bool const is_partial = instruction.has_partial_operand();
      if (instruction.op == Opcode::reduce && is_first) local(destination_of(instruction), wide, is_partial);
      if (instruction.op == Opcode::recv_reduce && is_first) local(source_of(instruction), wide, is_partial);
      // A chain that begins with a receive or copy adds the later operands to it.
      bool const begins = instruction.op == Opcode::recv || instruction.op == Opcode::copy;
      bool const adds_partial =
          begins ? chain.size() > 1 && at(chain[1]).has_partial_operand() : instruction.has_partial_other();
      if (instruction.is_local() || instruction.op == Opcode::send) local(source_of(instruction), false, adds_partial);
      if (instruction.receives()) step.operands.push_back({message_of(instruction), {}, adds_partial});
    }
  }

  [[nodiscard]] Step step_of(Joined const& joined) const {
    Step step;
    auto const& last = at(joined.place());
    step.bytes = totals_[joined.place()];
    step.steps = static_cast<std::uint32_t>(joined.chain.size() + joined.copies.size() + joined.sends.size());
    add_operands(step, joined);
    if (last.op == Opcode::send) {
      step.sends.push_back(message_of(last));
    } else {
      auto const range = destination_of(last);
      for (auto const i : joined.copies) step.destinations.push_back(range_of(destination_of(at(i)), false));
      if (!is_only_passed_on(joined, range)) step.destinations.push_back(range_of(range, last.has_wide_result()));
      for (auto const i : joined.sends) step.sends.push_back(message_of(at(i)));
      step.is_final = last.is_final();
    }
    add_dependencies(step, joined);
    return step;
  }

  void add_dependencies(Step& step, Joined const& joined) const {
    auto const group = group_of_[joined.place()];
    bool const lands = joined.chain.size() == 1 && last_is_plain_receive(joined) && step.destinations.size() == 1 &&
                       step.destinations[0].pieces.size() == 1 && !step.destinations[0].wide;
    step.may_land = lands;
    for (auto const* part : {&joined.chain, &joined.copies, &joined.sends})
      for (auto const i : *part)
        for (auto const& [before, segmentwise] : program_.dependencies_of(i)) {
          if (group_of_[before] == group) continue;
          if (at(before).writes_dst()) step.after.push_back(position_[group_of_[before]]);
          bool const is_overwritten = at(before).op == Opcode::send && at(i).writes_dst();
          if (is_overwritten) step.overwrites.push_back(message_of(at(before)));
          bool const same_peer = is_overwritten && at(before).peer == at(joined.place()).peer && segmentwise;
          if (!same_peer) step.may_land = false;
          if (same_peer) step.land_after = std::max(step.land_after, at(before).message + 1);
        }
    std::sort(step.after.begin(), step.after.end());
    step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
  }

  [[nodiscard]] bool last_is_plain_receive(Joined const& joined) const { return at(joined.place()).op == Opcode::recv; }

  plan::Program const& program_;
  Addresses const& addresses_;
  bool const keeps_wide_;
  std::vector<std::uint32_t> channel_of_;  // by rank
  std::vector<std::uint64_t> totals_;
  std::vector<Joined> joined_;
  std::vector<std::uint32_t> group_of_;  // by instruction: index into joined_
  std::vector<std::uint32_t> order_;     // of the groups, as steps
  std::vector<std::uint32_t> position_;  // by group: its step
};

}  // namespace

std::vector<Step> to_steps(plan::Program const& program, Addresses const& addresses, Dtype dtype) {
  Compiler compiler(program, addresses, dtype);
  compiler.join(true);
  if (!compiler.is_sound()) {
    compiler.join(false);
    CHORUS_ASSERT(compiler.is_sound(), "an instruction depends only on earlier ones");
  }
  return compiler.steps();
}

std::uint64_t largest_message(std::vector<Step> const& steps) {
  std::uint64_t bytes = 0;
  for (auto const& step : steps) {
    auto const& operands = step.operands;
    bool const receives = std::any_of(operands.begin(), operands.end(), [](auto const& one) { return one.message; });
    if (receives || !step.sends.empty()) bytes = std::max(bytes, step.bytes);
  }
  return bytes;
}

bool is_in_one_piece(Step const& step) {
  auto const is_one = [](Range const& range) { return range.pieces.size() == 1 && !range.wide; };
  return step.bytes != 0 && std::all_of(step.destinations.begin(), step.destinations.end(), is_one) &&
         std::all_of(step.operands.begin(), step.operands.end(),
                     [&](Operand const& one) { return one.message || is_one(one.local); });
}

std::vector<bool> folds_in_one_piece(std::vector<Step> const& steps) {
  std::vector<bool> result;
  for (auto const& step : steps) result.push_back(is_in_one_piece(step) && !step.destinations.empty());
  return result;
}

}  // namespace chorus::engine
