#include "collectives/model/time/simulate.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/model/time/readiness.hpp"
#include "collectives/model/time/resources.hpp"
#include "collectives/model/volume.hpp"
#include "collectives/plan/rotation.hpp"

namespace chorus::model {
namespace {

using plan::Algorithm, plan::Buffer, plan::Instruction, plan::Opcode, plan::Rank, plan::Spec;

// Limit for the kept instructions of one round: 32 MB. In larger rounds queues are ordered by rank.
constexpr std::size_t most_kept = 1 << 20;

// Limit for the instructions of a rank in a round that counts as one.
constexpr std::uint64_t instructions_of_usual_rounds = 4;

// Returns the mean of the first rounds of rank 0.
std::uint64_t instructions_of_round(Algorithm const& algorithm, Spec const& spec) {
  auto const rounds = std::clamp(algorithm.rounds(spec, 0), 1u, 16u);
  plan::Sink sink;
  for (std::uint32_t round = 0; round < rounds; ++round) algorithm.emit(spec, 0, round, sink);
  return sink.size() / rounds;
}

std::uint32_t most_scratch(Algorithm const& algorithm, Spec const& spec) {
  auto most = std::uint32_t{0};
  for (Rank rank = 0; rank < spec.ranks; ++rank) most = std::max(most, algorithm.scratch_chunks(spec, rank));
  return most;
}

// Simulates one round of all ranks at a time. The state for a send is read at its emission, before any message of its
// round has arrived.
class Run {
 public:
  Run(Algorithm const& algorithm, Spec const& spec, Network const& network, Volume const& volume)
      : algorithm_(algorithm),
        spec_(spec),
        network_(network),
        volume_(volume),
        readiness_(spec.ranks, volume.chunks(), most_scratch(algorithm, spec), spec.in_place),
        resources_(network, volume.bytes(), volume.segment_bytes_max(), volume.format()),
        first_send_(spec.ranks + 1),
        next_(spec.ranks),
        end_(spec.ranks) {}

  Simulation operator()() {
    std::vector<std::uint32_t> rounds(spec_.ranks);
    for (Rank rank = 0; rank < spec_.ranks; ++rank) rounds[rank] = algorithm_.rounds(spec_, rank);
    auto const last = *std::max_element(rounds.begin(), rounds.end());
    Simulation result;
    bool const rotates = algorithm_.rotates != nullptr && algorithm_.rotates(spec_);
    for (std::uint32_t round = 0; round < last; ++round) {
      resources_.next_round();
      if (rotates) {
        rotate(round);
      } else {
        emit(round, rounds);
        perform_round(round, rounds);
      }
      if (!sends_.empty()) ++result.cost.rounds;
    }
    result.cost.seconds = end_s_;
    result.cost.bytes_per_rank = resources_.most_sent_bytes();
    result.bottleneck = resources_.bottleneck(end_s_);
    return result;
  }

 private:
  struct Send {
    Send(Rank peer, std::uint64_t carries, Interval there_since) : ready(there_since), bytes(carries), to(peer) {}
    Interval ready;
    std::uint64_t bytes;
    Rank to;
    bool taken = false;
  };

  void emit(std::uint32_t round, std::vector<std::uint32_t> const& rounds) {
    sends_.clear();
    sink_.clear();
    keeps_ = true;
    for (Rank rank = 0; rank < spec_.ranks; ++rank) {
      if (!keeps_) sink_.clear();
      first_send_[rank] = sends_.size();
      next_[rank] = sink_.size();
      if (round < rounds[rank]) algorithm_.emit(spec_, rank, round, sink_);
      end_[rank] = sink_.size();
      for (auto const& i : sink_.instructions().subspan(next_[rank]))
        if (i.op == Opcode::send) emit_send(rank, i);
      keeps_ = sink_.size() < most_kept && keeps_;
    }
    first_send_[spec_.ranks] = sends_.size();
  }

  // For plans in which every rank does the same as rank 0: performs each instruction of rank 0 for all ranks, in the
  // order of perform_round().
  void rotate(std::uint32_t round) {
    sends_.clear();
    sink_.clear();
    algorithm_.emit(spec_, 0, round, sink_);
    for (auto const& i : sink_.instructions())
      if (i.op == Opcode::send) for_each_rank(i, [this](Rank rank, Instruction const& its) { emit_send(rank, its); });
    for (auto const& i : sink_.instructions())
      if (i.receives()) {
        auto const* const sends = matching_sends(i.peer);
        for_each_rank(i, [=, this](Rank rank, Instruction const& its) { receive(rank, its, sends[its.peer]); });
      } else if (i.op != Opcode::send) {
        for_each_rank(i, [this](Rank rank, Instruction const& its) { work(rank, its); });
      }
  }

  // Calls `visit` with each rank and its instruction that corresponds to `of_rank_0`.
  template <typename Visit>
  void for_each_rank(Instruction const& of_rank_0, Visit const& visit) {
    plan::Rotation const move_on(spec_.ranks, volume_.chunks());
    auto its = of_rank_0;
    for (Rank rank = 0; rank < spec_.ranks; ++rank, move_on(its)) visit(rank, its);
  }

  // Returns, in a round that rotates, the sends of all ranks that correspond to the one from `from` to rank 0.
  Send const* matching_sends(Rank from) {
    for (std::size_t first = 0; first < sends_.size(); first += spec_.ranks)
      if (auto& send = sends_[first + from]; send.to == 0 && !send.taken) {
        send.taken = true;
        return &sends_[first];
      }
    CHORUS_ASSERT(false, "both ends of a message stand in the same round");
  }

  void emit_send(Rank rank, Instruction const& i) {
    sends_.emplace_back(i.peer, volume_.bytes(read(i)), readiness_.of(rank, read(i)));
  }

  // Performs the first instructions of all ranks, then the second ones, and so on: queues are ordered by emission and
  // not by rank.
  void perform_round(std::uint32_t round, std::vector<std::uint32_t> const& rounds) {
    if (!keeps_) return perform_again(round, rounds);
    active_.clear();
    for (Rank rank = 0; rank < spec_.ranks; ++rank)
      if (perform_next(rank)) active_.push_back(rank);
    while (!active_.empty()) {
      auto kept = active_.begin();
      for (auto const rank : active_)
        if (perform_next(rank)) *kept++ = rank;
      active_.erase(kept, active_.end());
    }
  }

  // Performs the rank's next instruction. Returns true if the rank has instructions left.
  bool perform_next(Rank rank) {
    auto const instructions = sink_.instructions();
    auto& next = next_[rank];
    auto const skip_sends = [&] {
      while (next < end_[rank] && instructions[next].op == Opcode::send) ++next;
      return next < end_[rank];
    };
    if (!skip_sends()) return false;
    perform(rank, instructions[next++]);
    return skip_sends();
  }

  // For rounds of very many instructions, most of them local: generates them again, rank by rank.
  void perform_again(std::uint32_t round, std::vector<std::uint32_t> const& rounds) {
    for (Rank rank = 0; rank < spec_.ranks; ++rank) {
      sink_.clear();
      if (round < rounds[rank]) algorithm_.emit(spec_, rank, round, sink_);
      for (auto const& i : sink_.instructions())
        if (i.op != Opcode::send) perform(rank, i);
    }
  }

  static plan::Slice read(Instruction const& i) { return {i.src, i.src_chunk, i.chunks, i.stride}; }
  static plan::Slice written(Instruction const& i) { return {i.dst, i.dst_chunk, i.chunks, i.stride}; }

  // In place the output is the input.
  [[nodiscard]] bool changes_nothing(Instruction const& i) const {
    auto const is_output = [&](Buffer buffer) {
      return buffer == Buffer::output || (spec_.in_place && buffer == Buffer::input);
    };
    return i.op == Opcode::copy && i.src_chunk == i.dst_chunk &&
           (i.src == i.dst || (is_output(i.src) && is_output(i.dst)));
  }

  Send& matching_send(Rank from, Rank to) {
    for (auto i = first_send_[from]; i < first_send_[from + 1]; ++i)
      if (sends_[i].to == to && !sends_[i].taken) {
        sends_[i].taken = true;
        return sends_[i];
      }
    CHORUS_ASSERT(false, "both ends of a message stand in the same round");
  }

  // The operand of a reduction is not needed before the message arrives.
  static Interval awaited(Hop const& hop, Interval operand) {
    auto const on_its_way_s = hop.alpha_s - hop.overhead_s;
    return {operand.first_s - on_its_way_s, operand.last_s - on_its_way_s};
  }

  void perform(Rank rank, Instruction const& i) {
    if (i.receives())
      receive(rank, i, matching_send(i.peer, rank));
    else
      work(rank, i);
  }

  void receive(Rank rank, Instruction const& i, Send const& send) {
    bool const reduces = i.op == Opcode::recv_reduce;
    auto const hop = network_.hop(i.peer, rank);
    auto const ready = reduces ? later(send.ready, awaited(hop, readiness_.of(rank, read(i)))) : send.ready;
    land(rank, i, resources_.carry(i.peer, rank, hop, send.bytes, ready, reduces));
  }

  void work(Rank rank, Instruction const& i) {
    if (changes_nothing(i)) return;
    auto ready = readiness_.of(rank, read(i));
    if (i.op == Opcode::reduce) ready = later(ready, readiness_.of(rank, written(i)));
    auto const bytes = std::max(volume_.bytes(read(i)), volume_.bytes(written(i)));
    auto const kind = volume_.is_coded(written(i)) ? LocalWork::encoding
                      : volume_.is_coded(read(i))  ? LocalWork::decoding
                      : i.op == Opcode::reduce     ? LocalWork::reduction
                                                   : LocalWork::copy;
    land(rank, i, resources_.work(rank, bytes, ready, kind));
  }

  void land(Rank rank, Instruction const& i, Interval done) {
    readiness_.set(rank, written(i), done);
    end_s_ = std::max(end_s_, done.last_s);
  }

  Algorithm const& algorithm_;
  Spec const& spec_;
  Network const& network_;
  Volume const& volume_;
  Readiness readiness_;
  Resources resources_;
  plan::Sink sink_;    // instructions of this round of all ranks, or of one rank if they are too many
  bool keeps_ = true;  // sink_ has the instructions of all ranks
  std::vector<Send> sends_;
  std::vector<std::size_t> first_send_;  // per rank
  std::vector<std::size_t> next_, end_;  // per rank: range of its instructions in sink_
  std::vector<Rank> active_;             // ranks that have instructions left in this round
  double end_s_ = 0;
};

}  // namespace

Simulation simulate(Algorithm const& algorithm, Spec const& spec, Network const& network, std::uint64_t elements,
                    std::size_t element_bytes, std::optional<WireFormat> codes) {
  CHORUS_ASSERT(spec.ranks == network.ranks(), "a plan and a network of as many ranks");
  auto const volume = Volume(spec, algorithm.chunks(spec), elements, element_bytes, codes_of(algorithm, spec, codes));
  return Run(algorithm, spec, network, volume)();
}

std::uint64_t simulated_rounds(Algorithm const& algorithm, Spec const& spec) {
  auto sum = std::uint64_t{0};
  for (Rank rank = 0; rank < spec.ranks; ++rank) sum += algorithm.rounds(spec, rank);
  return sum * std::max<std::uint64_t>(instructions_of_round(algorithm, spec) / instructions_of_usual_rounds, 1);
}

}  // namespace chorus::model
