// A term of a reduction is a partial sum if an instruction of this rank has made it, or the sender of the message. The
// pass reads the sender's round: a message from its input is its contribution, or a coded copy of it, and every other
// message a partial sum.
#include <map>
#include <vector>

#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {
namespace {

class Marking {
 public:
  Marking(Algorithm const& algorithm, Program& program)
      : algorithm_(algorithm),
        program_(program),
        is_partial_(2 * std::size_t{program.chunks} + program.scratch_chunks, false) {}

  void run() {
    for (std::uint32_t round = 0; round + 1 < program_.round_begin.size(); ++round) {
      peers_.clear();
      for (auto i = program_.round_begin[round]; i < program_.round_begin[round + 1]; ++i) mark(i, round);
    }
  }

 private:
  void mark(std::uint32_t index, std::uint32_t round) {
    auto& i = program_.instructions[index];
    bool const adds_codes = i.op == Opcode::reduce && program_.is_coded(i.src, i.src_chunk);
    bool const is_other_partial = i.receives() ? is_sent_partial(i, round)
                                  : adds_codes ? are_codes_partial(i.src_chunk)
                                               : holds_partial(i.src, i.src_chunk);
    bool const reduces = i.adds();
    if (reduces) {
      bool const is_operand_partial =
          i.op == Opcode::reduce ? holds_partial(i.dst, i.dst_chunk) : holds_partial(i.src, i.src_chunk);
      if (is_operand_partial) i.flags |= partial_operand_flag;
      if (is_other_partial) i.flags |= partial_other_flag;
    }
    if (!i.writes_dst()) return;
    if (!i.receives() && program_.is_coded(i.dst, i.dst_chunk)) arrived_.erase(i.dst_chunk);
    for (std::uint32_t k = 0; k < i.chunks; ++k) cell(i.dst, i.dst_chunk + k * i.stride) = reduces || is_other_partial;
  }

  std::vector<bool>::reference cell(Buffer buffer, std::uint32_t chunk) {
    return is_partial_[static_cast<std::size_t>(buffer) * program_.chunks + chunk];  // input, output, scratch
  }

  // One chunk stands for all of an instruction, since verify::check proves that they are alike.
  bool holds_partial(Buffer buffer, std::uint32_t chunk) { return cell(buffer, chunk); }

  // Returns true if the peer's next message to this rank in this round is a partial sum. Of codes, which may be many
  // and of which few are added, only where they come from is kept.
  bool is_sent_partial(Instruction const& receive, std::uint32_t round) {
    auto& [rank, next] = asked(receive.peer);
    sink_.clear();
    algorithm_.emit(program_.spec, rank, round, sink_);
    std::uint32_t sent = 0;
    for (auto const& i : sink_.instructions())
      if (i.op == Opcode::send && i.peer == program_.rank && sent++ == next) {
        ++next;
        if (program_.is_coded(i.src, i.src_chunk))
          arrived_.insert_or_assign(receive.dst_chunk, Sent{rank, i.src_chunk, round});
        return i.src != Buffer::input;
      }
    return true;
  }

  // A coded chunk and the round in which a peer sends it.
  struct Sent {
    Rank rank = 0;
    std::uint32_t chunk = 0;
    std::uint32_t round = 0;
  };

  bool are_codes_partial(std::uint32_t chunk) {
    auto const sent = arrived_.find(chunk);
    return sent == arrived_.end() ? holds_partial(Buffer::scratch, chunk) : !is_copy_of_input(sent->second);
  }

  // Returns true if the last instruction before the round by which the rank writes the chunk is a copy of its input.
  [[nodiscard]] bool is_copy_of_input(Sent const& sent) const {
    Sink sink;
    for (auto round = sent.round; round-- > 0;) {
      sink.clear();
      algorithm_.emit(program_.spec, sent.rank, round, sink);
      auto const all = sink.instructions();
      for (auto i = all.rbegin(); i != all.rend(); ++i)
        if (i->writes_dst() && i->dst == Buffer::scratch && i->dst_chunk == sent.chunk)
          return i->op == Opcode::copy && i->src == Buffer::input;
    }
    return false;
  }

  struct Asked {
    Rank peer;
    std::uint32_t next = 0;  // number of its next message in the round
  };
  Asked& asked(Rank peer) {
    for (auto& known : peers_)
      if (known.peer == peer) return known;
    return peers_.emplace_back(Asked{peer});
  }

  Algorithm const& algorithm_;
  Program& program_;
  std::vector<bool> is_partial_;           // per chunk of all buffers
  std::vector<Asked> peers_;               // peers with messages in this round
  std::map<std::uint32_t, Sent> arrived_;  // by coded chunk: the message that it holds
  Sink sink_;
};

}  // namespace

void mark_partials(Algorithm const& algorithm, Program& program) {
  if (reduces(program.spec.op) && program.spec.ranks > 1) Marking(algorithm, program).run();
}

}  // namespace chorus::plan
