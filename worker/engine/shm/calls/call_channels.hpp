// The channels of a call: the lanes to its peers, and which of its messages have passed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/plan/program.hpp"
#include "worker/engine/program/addresses.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/engine/shm/lanes/shared_lane.hpp"

namespace chorus::engine {

// Of one kind of call, used for one call after another. One thread at a time.
class CallChannels {
 public:
  // The program outlives the channels. `fingerprint`: of the kind of call; both ends of a channel must agree on it.
  CallChannels(plan::Program const& program, Addresses const& addresses, std::uint64_t fingerprint);

  // Begins call number `call` of the group. `lanes`: by rank; they stay valid until the call is done.
  void begin(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(channels_.size()); }
  [[nodiscard]] SharedLane& lane(std::uint32_t channel) const { return *channels_[channel].lane; }
  // Number of a message among all of its lane.
  [[nodiscard]] std::uint64_t sent_number(MessageName const& name) const {
    return channels_[name.channel].first_sent + name.number;
  }
  [[nodiscard]] std::uint64_t received_number(MessageName const& name) const {
    return channels_[name.channel].first_received + name.number;
  }

  // True if all messages before it have been sent, or received.
  [[nodiscard]] bool is_next_to_send(MessageName const& name) const {
    return lane(name.channel).messages_sent == sent_number(name);
  }
  [[nodiscard]] bool is_next_to_receive(MessageName const& name) const {
    return lane(name.channel).messages_received == received_number(name);
  }

  void count_sent(std::uint64_t bytes) { bytes_sent_ += bytes; }
  // The message has been sent whole.
  void sent(MessageName const& name) {
    auto& channel = channels_[name.channel];
    channel.referred[name.number] = channel.lane->referred();
    ++channel.lane->messages_sent;
  }
  // Takes bytes of the message that arrives on a channel. `is_all`: it has no more.
  void take(std::uint32_t channel, std::uint64_t bytes, bool is_all) {
    auto& lane = *channels_[channel].lane;
    lane.take(bytes);
    if (is_all) ++lane.messages_received;
    bytes_received_ += bytes;
  }
  // A message without bytes is counted, but never sent.
  void take_nothing(std::uint32_t channel) { ++channels_[channel].lane->messages_received; }
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }
  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_; }

  // True if the message was sent, and the memory that it refers to is no longer needed.
  [[nodiscard]] bool is_read(MessageName const& name) const {
    auto const& channel = channels_[name.channel];
    return channel.lane->messages_sent > channel.first_sent + name.number &&
           channel.lane->has_consumed(channel.referred[name.number]);
  }
  // True if the peer needs no memory that sent messages refer to.
  [[nodiscard]] bool is_all_read(std::uint32_t c) const { return lane(c).has_consumed(lane(c).referred()); }
  [[nodiscard]] bool are_all_read() const {
    return std::ranges::all_of(
        channels_, [](Channel const& channel) { return channel.lane->has_consumed(channel.lane->referred()); });
  }

 private:
  struct Channel {
    plan::Rank peer = 0;
    std::uint32_t sends_agreement = 0, receives_agreement = 0;
    std::uint64_t first_sent = 0, first_received = 0;  // messages of the lane before this call
    // By sent message: number of records to be consumed before its memory may change.
    std::vector<std::uint64_t> referred;
    SharedLane* lane = nullptr;
  };
  std::vector<Channel> channels_;
  std::uint64_t bytes_sent_ = 0, bytes_received_ = 0;  // of the current call
};

}  // namespace chorus::engine
