#include "collectives/model/simulate.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/model/readiness.hpp"
#include "collectives/model/resources.hpp"
#include "collectives/model/volume.hpp"

namespace chorus::model {
namespace {

using plan::Algorithm, plan::Buffer, plan::Instruction, plan::Opcode, plan::Rank, plan::Spec;

constexpr std::size_t most_others = 1 << 20;  // kept of one round: 24 MB

std::uint32_t most_scratch(Algorithm const& algorithm, Spec const& spec) {
  auto most = std::uint32_t{0};
  for (Rank rank = 0; rank < spec.ranks; ++rank) most = std::max(most, algorithm.scratch_chunks(spec, rank));
  return most;
}

// One round of all ranks at a time. What a send finds is looked up when it is emitted, before anything of its round
// has landed.
class Run : private plan::Sink {
 public:
  Run(Algorithm const& algorithm, Spec const& spec, Network const& network, Volume const& volume)
      : algorithm_(algorithm),
        spec_(spec),
        in_place_(spec.in_place),
        network_(network),
        volume_(volume),
        readiness_(spec.ranks, volume.chunks(), most_scratch(algorithm, spec)),
        resources_(network),
        first_send_(spec.ranks + 1),
        first_other_(spec.ranks + 1) {}

  Simulation operator()() {
    std::vector<std::uint32_t> rounds(spec_.ranks);
    for (Rank rank = 0; rank < spec_.ranks; ++rank) rounds[rank] = algorithm_.rounds(spec_, rank);
    auto const last = *std::max_element(rounds.begin(), rounds.end());
    Simulation result;
    for (std::uint32_t round = 0; round < last; ++round) {
      resources_.next_round();
      emit(round, rounds);
      if (!sends_.empty()) ++result.cost.rounds;
      perform_round(round, rounds);
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
  // An instruction that is no send. In another order than there, so that it is copied field by field: a processor that
  // reads in one go what was just written in pieces waits.
  struct Other {
    Other(Instruction const& i, bool in_place)
        : chunks(i.chunks),
          src_chunk(i.src_chunk),
          stride(i.stride),
          dst_chunk(i.dst_chunk),
          peer(i.peer),
          dst(seen(i.dst, in_place)),
          op(i.op),
          src(seen(i.src, in_place)) {}
    [[nodiscard]] plan::Slice read() const { return {src, src_chunk, chunks, stride}; }
    [[nodiscard]] plan::Slice written() const { return {dst, dst_chunk, chunks, stride}; }

    std::uint32_t chunks, src_chunk, stride, dst_chunk;
    Rank peer;
    Buffer dst;
    Opcode op;
    Buffer src;
  };

  void emit(std::uint32_t round, std::vector<std::uint32_t> const& rounds) {
    sends_.clear();
    others_.clear();
    active_.clear();
    keeps_others_ = true;
    for (rank_ = 0; rank_ < spec_.ranks; ++rank_) {
      first_send_[rank_] = sends_.size();
      first_other_[rank_] = others_.size();
      if (round < rounds[rank_]) algorithm_.emit(spec_, rank_, round, *this);
      if (others_.size() > first_other_[rank_]) active_.push_back(rank_);
      keeps_others_ = others_.size() < most_others;
    }
    first_send_[spec_.ranks] = sends_.size();
    first_other_[spec_.ranks] = others_.size();
  }

  // The first instructions of all ranks, then the second ones, ...: who stands in line somewhere stands there in the
  // order of the emission, whatever the ranks' numbers.
  void perform_round(std::uint32_t round, std::vector<std::uint32_t> const& rounds) {
    if (!keeps_others_) return perform_again(round, rounds);
    for (std::size_t nth = 0; !active_.empty(); ++nth) {
      auto kept = active_.begin();
      for (auto const rank : active_) {
        auto const at = first_other_[rank] + nth;
        perform(rank, others_[at]);
        if (at + 1 < first_other_[rank + 1]) *kept++ = rank;
      }
      active_.erase(kept, active_.end());
    }
  }

  // Rounds of very many instructions, most of them local: generated a second time, rank by rank, instead of kept.
  void perform_again(std::uint32_t round, std::vector<std::uint32_t> const& rounds) {
    performs_ = true;
    for (rank_ = 0; rank_ < spec_.ranks; ++rank_)
      if (round < rounds[rank_]) algorithm_.emit(spec_, rank_, round, *this);
    performs_ = false;
  }

  // In place the output is the input.
  static Buffer seen(Buffer buffer, bool in_place) {
    return in_place && buffer == Buffer::input ? Buffer::output : buffer;
  }

  void put(Instruction const& i) override {
    if (i.op != Opcode::send) {
      if (performs_)
        perform(rank_, Other(i, in_place_));
      else if (keeps_others_)
        others_.emplace_back(i, in_place_);
    } else if (!performs_) {
      plan::Slice const range{seen(i.src, in_place_), i.src_chunk, i.chunks, i.stride};
      sends_.emplace_back(i.peer, volume_.bytes(range), readiness_.of(rank_, range));
    }
  }

  Send& matching_send(Rank from, Rank to) {
    for (auto i = first_send_[from]; i < first_send_[from + 1]; ++i)
      if (sends_[i].to == to && !sends_[i].taken) return sends_[i];
    CHORUS_ASSERT(false, "both ends of a message stand in the same round");
  }

  // What a message is added to need not be there before the message is.
  Interval awaited(Rank from, Rank to, Interval operand) {
    auto const& link = network_.link(from, to);
    auto const on_its_way_s = link.alpha_s - network_.constants().overhead_s(link);
    return {operand.first_s - on_its_way_s, operand.last_s - on_its_way_s};
  }

  void perform(Rank rank, Other const& i) {
    Interval done;
    if (i.op == Opcode::recv || i.op == Opcode::recv_reduce) {
      auto& send = matching_send(i.peer, rank);
      send.taken = true;
      bool const reduces = i.op == Opcode::recv_reduce;
      auto const ready = reduces ? later(send.ready, awaited(i.peer, rank, readiness_.of(rank, i.read()))) : send.ready;
      done = resources_.carry(i.peer, rank, send.bytes, ready, reduces);
    } else {
      if (i.op == Opcode::copy && i.src == i.dst && i.src_chunk == i.dst_chunk) return;
      auto ready = readiness_.of(rank, i.read());
      if (i.op == Opcode::reduce) ready = later(ready, readiness_.of(rank, i.written()));
      done = resources_.work(rank, volume_.bytes(i.written()), ready);
    }
    readiness_.set(rank, i.written(), done);
    end_s_ = std::max(end_s_, done.last_s);
  }

  Algorithm const& algorithm_;
  Spec const& spec_;
  bool const in_place_;
  Network const& network_;
  Volume const& volume_;
  Readiness readiness_;
  Resources resources_;
  Rank rank_ = 0;             // of those that emit
  bool keeps_others_ = true;  // instructions that are no sends, of this round
  bool performs_ = false;     // them as they are emitted
  std::vector<Send> sends_;
  std::vector<Other> others_;
  std::vector<std::size_t> first_send_, first_other_;  // per rank
  std::vector<Rank> active_;                           // have something left to do in this round
  double end_s_ = 0;
};

}  // namespace

Simulation simulate(Algorithm const& algorithm, Spec const& spec, Network const& network, std::uint64_t elements,
                    std::size_t element_bytes) {
  CHORUS_ASSERT(spec.ranks == network.ranks(), "a plan and a network of as many ranks");
  auto const volume = Volume(spec, algorithm.chunks(spec), elements, element_bytes);
  return Run(algorithm, spec, network, volume)();
}

std::uint64_t simulated_rounds(Algorithm const& algorithm, Spec const& spec) {
  auto sum = std::uint64_t{0};
  for (Rank rank = 0; rank < spec.ranks; ++rank) sum += algorithm.rounds(spec, rank);
  return sum;
}

}  // namespace chorus::model
