// Resources: the ports, data threads, network cards, uplinks and cores that messages of a simulation share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collectives/model/network.hpp"
#include "collectives/model/time/interval.hpp"

namespace chorus::model {

// One direction of one rank. It serves messages in order of arrival, and has two clocks, one for first segments and one
// for all work: segments of several messages take turns, so a message waits for the first segments of earlier messages,
// and is finished when all their work is done.
struct Port {
  double first_free_s = 0;
  double last_free_s = 0;
  double busy_s = 0;  // without latencies
  std::uint64_t bytes = 0;
};

// A resource that several ranks share. Messages are not processed in the order of time, and a late message must not
// delay an earlier one that is processed after it. So messages do not wait for a clock. But no message is finished
// before the resource can have done all work of the message's round since the round's first message, and all work of
// the plan since its first message.
struct Shared {
  double begun_s = std::numeric_limits<double>::infinity();
  double work_s = 0;
  std::uint32_t round = 0;  // the round of the following members
  double round_begun_s = std::numeric_limits<double>::infinity();
  double round_first_s = 0;  // work for first segments
  double round_work_s = 0;
};

// A local instruction: a copy, a reduction of received data, a copy that encodes, or one of either that decodes.
enum class LocalWork : std::uint8_t { copy, reduction, encoding, decoding };

class Resources {
 public:
  // The network must outlive this object. Each rank has a vector of `vector_bytes` bytes, which travels in segments of
  // at most `segment_bytes_max`. `codes`: format of the codes that are encoded and decoded on the way.
  Resources(Network const& network, std::uint64_t vector_bytes, std::uint64_t segment_bytes_max, WireFormat codes);

  // Begins the next round, to which the following messages belong.
  void next_round() { ++round_; }

  // Carries a message over the hop between its two ranks. `ready`: when the sender has the data and the receiver is
  // ready. Returns when the message has arrived and, if `reduces`, has been reduced.
  Interval carry(plan::Rank from, plan::Rank to, Hop const& hop, std::uint64_t bytes, Interval ready, bool reduces) {
    // copies_s() is 0 if cores are not shared.
    if (bytes > segment_bytes_ || shares_anything_) return carry_any(from, to, hop, bytes, ready, reduces);
    auto const gamma = reduces ? gamma_s_per_byte_ : 0;
    send_ports_[from].bytes += bytes;
    return carry_segment(send_ports_[from], receive_ports_[to], hop, seconds(bytes, hop.beta_s_per_byte),
                         seconds(bytes, hop.beta_s_per_byte + gamma), ready.first_s);
  }

  // Does a local instruction. Returns when it has ended.
  Interval work(plan::Rank rank, std::uint64_t bytes, Interval ready, LocalWork kind);

  // Returns the bytes that the busiest rank has sent.
  [[nodiscard]] std::uint64_t most_sent_bytes() const;

  // Returns the resource that limits a run of `seconds`: the busiest one, among equals the one that the fewest ranks
  // share; "latency" if no resource is busy for half of the time.
  [[nodiscard]] std::string bottleneck(double seconds) const;

 private:
  class Message;
  struct Uplinks {
    Level level;
    double s_per_byte;
    std::vector<Shared> out, in;  // by group
  };

  static double seconds(std::uint64_t bytes, double s_per_byte) {
    return static_cast<double>(static_cast<std::int64_t>(bytes)) * s_per_byte;  // signed: one instruction
  }
  // A message of one segment that shares nothing but its ports: the most frequent case.
  static Interval carry_segment(Port& sender, Port& receiver, Hop const& hop, double sent_s, double received_s,
                                double ready_s) {
    auto const start_s = std::max(std::max(ready_s, sender.first_free_s), receiver.first_free_s);
    occupy(sender, start_s, hop.overhead_s, sent_s);
    occupy(receiver, start_s, hop.overhead_s, received_s);
    auto const done_s = start_s + hop.alpha_s + received_s;
    return {done_s, done_s};
  }
  static void occupy(Port& port, double start_s, double overhead_s, double bytes_s) {
    port.first_free_s = start_s + overhead_s + bytes_s;
    port.last_free_s = std::max(port.last_free_s, start_s) + overhead_s + bytes_s;
    port.busy_s += bytes_s;
  }
  Interval carry_any(plan::Rank from, plan::Rank to, Hop const& hop, std::uint64_t bytes, Interval ready, bool reduces);

  Network const& network_;
  std::uint64_t segment_bytes_;
  double gamma_s_per_byte_;
  CodecCost codec_;
  bool shares_anything_ = false;  // besides ports
  std::uint32_t round_ = 0;
  std::vector<Port> send_ports_, receive_ports_;  // by rank
  std::vector<Uplinks> uplinks_;
  std::vector<Shared> cores_;         // by host; empty if unlimited
  std::vector<Shared> threads_;       // by rank; empty if cores_ is
  std::vector<std::uint32_t> woken_;  // by rank: the last round in which a message came
};

}  // namespace chorus::model
