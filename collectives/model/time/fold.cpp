#include "collectives/model/time/fold.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "collectives/core/assert.hpp"
#include "collectives/model/time/copies.hpp"
#include "collectives/model/volume.hpp"

namespace chorus::model {
namespace {

using plan::Algorithm, plan::Instruction, plan::Opcode, plan::Rank, plan::Spec;

constexpr std::uint32_t least_sampled_ranks = 6;

// Ranks and rounds that stand for all of them.
struct Sample {
  std::vector<Rank> ranks;   // ascending
  std::size_t special = 0;   // number of ranks that represent only themselves
  std::uint32_t rounds = 0;  // of the plan
  std::uint32_t step = 1;    // every step-th round is examined

  // Returns the number of ranks that each other rank of the sample represents.
  [[nodiscard]] double weight(std::uint32_t all) const {
    auto const others = ranks.size() - special;
    return others == 0 ? 1 : static_cast<double>(all - special) / static_cast<double>(others);
  }
};

// Returns the n-th of points that fill the ranks evenly but at no constant distance, which could be that of the hosts.
Rank spread(std::uint32_t n, std::uint32_t ranks) {
  auto const turn = static_cast<double>(n) * (std::numbers::phi - 1);
  return static_cast<Rank>((turn - std::floor(turn)) * ranks);
}

// Returns the cost of a call of emit(), in instructions: some algorithms read the whole shape.
std::uint64_t effort_per_round(Algorithm const& algorithm, Spec const& spec, std::uint32_t rounds) {
  constexpr std::uint32_t most = 16;
  plan::Sink sink;
  for (std::uint32_t round = 0; round < rounds && round < most; ++round) algorithm.emit(spec, 0, round, sink);
  return std::max<std::uint64_t>(sink.size() / std::clamp(rounds, 1u, most), 1) + spec.shape.size() / 16;
}

Sample sample_of(Algorithm const& algorithm, Spec const& spec, std::uint64_t budget) {
  Sample sample;
  sample.ranks = {0, spec.ranks - 1, spec.root};
  for (auto const rank : sample.ranks) sample.rounds = std::max(sample.rounds, algorithm.rounds(spec, rank));
  budget = std::max<std::uint64_t>(budget / effort_per_round(algorithm, spec, sample.rounds), 1);
  auto const affordable = std::max<std::uint64_t>(budget / std::max(sample.rounds, 1u), least_sampled_ranks);
  if (affordable >= spec.ranks) {
    sample.ranks.resize(spec.ranks);
    for (Rank rank = 0; rank < spec.ranks; ++rank) sample.ranks[rank] = rank;
    for (auto const rank : sample.ranks) sample.rounds = std::max(sample.rounds, algorithm.rounds(spec, rank));
    return sample;
  }
  auto const sort = [&] {
    std::sort(sample.ranks.begin(), sample.ranks.end());
    sample.ranks.erase(std::unique(sample.ranks.begin(), sample.ranks.end()), sample.ranks.end());
  };
  sort();
  sample.special = sample.ranks.size();
  for (std::uint32_t n = 1; sample.special + n <= affordable; ++n) sample.ranks.push_back(spread(n, spec.ranks));
  sort();
  sample.step = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(sample.rounds * std::uint64_t{sample.ranks.size()} / (2 * budget), 1));
  return sample;
}

// Bytes that leave and enter the groups of a level.
struct Crossing {
  double out_bytes = 0, in_bytes = 0;

  void add(Crossing const& other, double weight) {
    out_bytes += other.out_bytes * weight;
    in_bytes += other.in_bytes * weight;
  }
};

// Work of one rank, in one round or in all.
struct Work {
  double send_s = 0, receive_s = 0, local_s = 0;  // work of its ports and its reductions
  double latency_s = 0;                           // time that its sends had to wait, beyond the work of ports
  double core_s = 0;                              // work of its host's cores, and of its own thread on one of them
  std::array<Crossing, uplink_levels> crossing;
  std::uint64_t sent_bytes = 0;
};

class Fold {
 public:
  Fold(Algorithm const& algorithm, Spec const& spec, Network const& network, Volume const& volume, Sample sample)
      : algorithm_(algorithm),
        spec_(spec),
        network_(network),
        constants_(network.constants()),
        volume_(volume),
        sample_(std::move(sample)),
        segment_bytes_(static_cast<double>(std::min(constants_.segment_bytes, volume.segment_bytes_max()))),
        gamma_s_per_byte_(network.gamma_s_per_byte(volume.bytes())),
        rest_(sample_.ranks.size()),
        fresh_(sample_.ranks.size()) {
    auto scratch = std::uint32_t{0};
    for (auto const rank : sample_.ranks) scratch = std::max(scratch, algorithm_.scratch_chunks(spec_, rank));
    for (auto& chunks : fresh_) chunks.resize(2 * std::size_t{volume_.chunks()} + scratch);
  }

  Cost operator()() {
    auto filled_s = 0.0, before_s = 0.0;
    auto unseen = std::uint32_t{0};
    bool seen_any = false;
    Cost cost;
    for (std::uint32_t round = 0; round < sample_.rounds; round += sample_.step) {
      auto const round_s = fold(round);
      if (!sends_ && local_s_ > 0) filled_s += local_s_;
      if (!sends_) {
        ++unseen;
        continue;
      }
      // Rounds in which no sampled rank acted cost as much as the rounds around them.
      if (!is_complete()) filled_s += unseen * (seen_any ? (before_s + round_s) / 2 : round_s);
      if (!is_complete()) cost.rounds += unseen;
      unseen = 0;
      filled_s += round_s;
      before_s = round_s;
      seen_any = true;
      ++cost.rounds;
    }
    if (!is_complete() && seen_any) {
      filled_s += unseen * before_s;
      cost.rounds += unseen;
    }
    auto const scale = static_cast<double>(sample_.step);
    if (seen_any) filled_s += longest_wait_s_ / scale;  // latency of the last message
    cost.rounds = std::min(cost.rounds * sample_.step, sample_.rounds);
    finish(cost, filled_s * scale, scale);
    return cost;
  }

 private:
  [[nodiscard]] bool is_complete() const { return sample_.ranks.size() == spec_.ranks; }
  [[nodiscard]] double weight_of(std::size_t nth) const {
    auto const rank = sample_.ranks[nth];
    bool const special = sample_.special > 0 && (rank == 0 || rank == spec_.ranks - 1 || rank == spec_.root);
    return special ? 1 : sample_.weight(spec_.ranks);
  }
  // Returns the seconds of a group's uplink at this level, if its ranks transfer as much as the mean of the sample.
  [[nodiscard]] double on_one_uplink(Level level, Crossing const& crossing) const {
    auto const bytes = std::max(crossing.out_bytes, crossing.in_bytes) / spec_.ranks * network_.largest_group(level);
    return bytes * network_.uplink_s_per_byte(level);
  }
  // Returns the seconds of a host's cores for all of its ranks, if they do as much as the mean of the sample.
  [[nodiscard]] double on_one_host(double core_s) const {
    if (!network_.shares_cores()) return 0;
    return core_s / spec_.ranks * network_.largest_group(Level::host) / constants_.host_cores;
  }

  double fold(std::uint32_t round) {
    auto slowest_s = 0.0, core_s = 0.0;
    std::array<Crossing, uplink_levels> crossing;
    sends_ = false;
    local_s_ = 0;
    for (nth_ = 0; nth_ < sample_.ranks.size(); ++nth_) {
      first_ = {};
      received_.clear();
      sink_.clear();
      algorithm_.emit(spec_, sample_.ranks[nth_], round, sink_);
      for (auto const& instruction : sink_.instructions()) add(instruction);
      for (auto const chunk : received_) fresh_[nth_][chunk] = true;
      slowest_s = std::max(slowest_s, std::max(first_.send_s, first_.receive_s) + first_.latency_s + first_.local_s);
      if (network_.shares_cores()) slowest_s = std::max(slowest_s, first_.core_s);
      auto const weight = weight_of(nth_);
      core_s += (first_.core_s + (first_.receive_s > 0 ? network_.wake_s() : 0)) * weight;
      for (auto const level : network_.limited_levels()) {
        auto const at = static_cast<std::size_t>(level);
        crossing[at].add(first_.crossing[at], weight);
      }
    }
    local_s_ = slowest_s;
    slowest_s = std::max(slowest_s, on_one_host(core_s));
    for (auto const level : network_.limited_levels())
      slowest_s = std::max(slowest_s, on_one_uplink(level, crossing[static_cast<std::size_t>(level)]));
    return slowest_s;
  }

  [[nodiscard]] std::size_t place(plan::Buffer buffer, std::size_t chunk) const {
    return std::min(static_cast<std::size_t>(buffer) * volume_.chunks() + chunk, fresh_[nth_].size() - 1);
  }
  // A message's range is identified by its first and its last chunk.
  [[nodiscard]] std::array<std::size_t, 2> ends_of(Instruction const& i) const {
    auto const buffer = i.receives() ? i.dst : i.src;
    auto const chunk = i.receives() ? i.dst_chunk : i.src_chunk;
    return {place(buffer, chunk), place(buffer, chunk + (std::size_t{i.chunks} - 1) * i.stride)};
  }

  // Adds the first segments to the round, and the rest to the whole plan.
  void add(Instruction const& i) {
    auto const writes = i.writes_dst();
    plan::Slice const read{i.src, i.src_chunk, i.chunks, i.stride}, written{i.dst, i.dst_chunk, i.chunks, i.stride};
    bool const is_local = i.is_local();
    auto const carried =
        is_local ? std::max(volume_.bytes(read), volume_.bytes(written)) : volume_.bytes(writes ? written : read);
    auto const bytes = static_cast<double>(carried);
    auto const first = std::min(bytes, segment_bytes_), rest = bytes - first;
    auto& all = rest_[nth_];
    auto const& codec = constants_.codec_of(volume_.format());
    auto const gamma = is_local && volume_.is_coded(written) ? codec.encode_s_per_byte
                       : is_local && volume_.is_coded(read)  ? codec.decode_s_per_byte
                       : i.op == Opcode::copy                ? constants_.gamma_s_per_byte
                                                             : gamma_s_per_byte_;
    if (is_local) {
      if (fresh_[nth_][place(i.src, i.src_chunk)]) received_.push_back(place(i.dst, i.dst_chunk));
      if (i.op == Opcode::reduce) first_.local_s += first * gamma;
      all.local_s += bytes * gamma;
      first_.core_s += first * gamma;
      all.core_s += rest * gamma;
      return;
    }
    sends_ = true;
    auto const rank = sample_.ranks[nth_];
    auto const level = network_.level(rank, i.peer);
    auto const& link = i.receives() ? network_.link(i.peer, rank) : network_.link(rank, i.peer);
    auto const reduced = i.op == Opcode::recv_reduce ? gamma : 0;
    auto const byte_s = link.beta_s_per_byte + reduced, core_byte_s = constants_.byte_cpu_s + reduced;
    auto const overhead_s = constants_.overhead_s(link);
    (i.receives() ? first_.receive_s : first_.send_s) += overhead_s + first * byte_s;
    // Rounds overlap if no rank waits for data of earlier ones.
    auto const waits_s = link.alpha_s - overhead_s + copies_s(network_, rank, i.peer, carried);
    longest_wait_s_ = std::max(longest_wait_s_, waits_s);
    auto const ends = ends_of(i);
    if (i.receives()) {
      received_.insert(received_.end(), ends.begin(), ends.end());
    } else {
      // If rounds are left out, the data that they transfer is unknown.
      bool const unknown = sample_.step != 1;
      for (auto const end : ends) {
        if (unknown || fresh_[nth_][end]) first_.latency_s = std::max(first_.latency_s, waits_s);
        fresh_[nth_][end] = false;
      }
    }
    (i.receives() ? all.receive_s : all.send_s) += rest * byte_s;
    first_.core_s += constants_.message_cpu_s + first * core_byte_s;
    all.core_s += rest * core_byte_s;
    if (!i.receives()) all.sent_bytes += carried;
    for (auto const within : network_.limited_levels()) {
      if (within >= level) break;
      auto const at = static_cast<std::size_t>(within);
      (i.receives() ? first_.crossing[at].in_bytes : first_.crossing[at].out_bytes) += first;
      (i.receives() ? all.crossing[at].in_bytes : all.crossing[at].out_bytes) += rest;
    }
  }

  void finish(Cost& cost, double filled_s, double scale) const {
    auto rest_s = 0.0, local_s = 0.0, core_s = 0.0;
    std::array<Crossing, uplink_levels> crossing;
    auto sent_bytes = std::uint64_t{0};
    for (std::size_t nth = 0; nth < rest_.size(); ++nth) {
      auto const& work = rest_[nth];
      auto const weight = weight_of(nth) * scale;
      rest_s = std::max({rest_s, work.send_s * scale, work.receive_s * scale});
      local_s = std::max(local_s, work.local_s * scale);
      core_s += work.core_s * weight;
      if (network_.shares_cores()) rest_s = std::max(rest_s, work.core_s * scale);
      sent_bytes = std::max(sent_bytes, work.sent_bytes);
      for (std::size_t level = 0; level < uplink_levels; ++level) crossing[level].add(work.crossing[level], weight);
    }
    rest_s = std::max(rest_s, on_one_host(core_s));
    for (auto const level : network_.limited_levels())
      rest_s = std::max(rest_s, on_one_uplink(level, crossing[static_cast<std::size_t>(level)]));
    cost.seconds = std::max(filled_s + rest_s, local_s);
    cost.bytes_per_rank =
        sample_.step == 1 ? sent_bytes : static_cast<std::uint64_t>(static_cast<double>(sent_bytes) * scale);
  }

  Algorithm const& algorithm_;
  Spec const& spec_;
  Network const& network_;
  Constants const& constants_;
  Volume const& volume_;
  Sample const sample_;
  double segment_bytes_;
  double gamma_s_per_byte_;
  std::vector<Work> rest_;                // per sampled rank
  std::vector<std::vector<bool>> fresh_;  // per sampled rank and chunk: received in earlier rounds, and not sent since
  std::vector<std::size_t> received_;     // in this round, by the emitting rank
  double longest_wait_s_ = 0;
  plan::Sink sink_;
  Work first_;           // of the emitting rank, in this round
  std::size_t nth_ = 0;  // index of the emitting rank in the sample
  bool sends_ = false;   // any rank sends in this round
  double local_s_ = 0;   // of a round in which no rank sends
};

}  // namespace

Cost fold(Algorithm const& algorithm, Spec const& spec, Network const& network, std::uint64_t elements,
          std::size_t element_bytes, std::uint64_t budget, std::optional<WireFormat> codes) {
  CHORUS_ASSERT(spec.ranks == network.ranks(), "a plan and a network of as many ranks");
  auto const volume = Volume(spec, algorithm.chunks(spec), elements, element_bytes, codes_of(algorithm, spec, codes));
  return Fold(algorithm, spec, network, volume, sample_of(algorithm, spec, budget))();
}

}  // namespace chorus::model
