// Members of a group that pass messages, over links whose time belongs to the test.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/testing/failing_runs.hpp"

namespace chorus::engine::testing {

inline bool is_well(std::shared_ptr<std::optional<MessageResult>> const& ended) {
  return ended->has_value() && (*ended)->status.has_value();
}

// A group of all ranks of a fleet, and its messages.
class MessageMembers {
  std::deque<std::vector<std::byte>> sent_;  // outlives the fleet

 public:
  explicit MessageMembers(FleetOptions options) : fleet(std::move(options)) {
    for (plan::Rank rank = 0; rank < fleet.ranks(); ++rank) {
      GroupMembership membership{"g", 1, rank, {}, 4711};
      for (plan::Rank other = 0; other < fleet.ranks(); ++other) membership.members.push_back(fleet.peer(other));
      groups_.push_back(std::make_shared<MessageGroup>(std::move(membership)));
    }
  }

  using Ended = std::shared_ptr<std::optional<MessageResult>>;
  using Bytes = std::vector<std::byte>;

  Ended send(plan::Rank from, plan::Rank to, std::uint32_t tag, Bytes bytes,
             std::chrono::milliseconds timeout = std::chrono::milliseconds(1000)) {
    return send_from(from, to, tag, sent_.emplace_back(std::move(bytes)), timeout);
  }
  Ended send_from(plan::Rank from, plan::Rank to, std::uint32_t tag, std::span<std::byte const> bytes,
                  std::chrono::milliseconds timeout = std::chrono::milliseconds(1000)) {
    MessageRequest request{MessageWay::send, to, tag, bytes, {}, fleet.now() + timeout, 0};
    return begin(from, request);
  }
  Ended receive(plan::Rank at, plan::Rank source, std::uint32_t tag, std::span<std::byte> to,
                std::chrono::milliseconds timeout = std::chrono::milliseconds(1000)) {
    MessageRequest request{MessageWay::receive, source, tag, {}, to, fleet.now() + timeout, 0};
    request.number = last_receive_ = groups_[at]->draw_receive();
    return begin(at, request);
  }
  // Cancels the receive that was begun last.
  bool cancel_last(plan::Rank at) { return cancel(at, last_receive_); }
  bool cancel(plan::Rank at, std::uint64_t receive) {
    return is_well(begin(at, {.way = MessageWay::cancel, .number = receive}));
  }
  [[nodiscard]] std::uint64_t last_receive() const { return last_receive_; }
  Ended begin(plan::Rank rank, MessageRequest const& request) {
    auto ended = std::make_shared<std::optional<MessageResult>>();
    fleet.engine(rank).begin_message(groups_[rank], request,
                                     [ended](MessageResult result) { *ended = std::move(result); });
    return ended;
  }
  // These make no message wait, and say if they have done anything.
  bool send_at_once(plan::Rank from, plan::Rank to, std::uint32_t tag, Bytes const& bytes) {
    MessageRequest const request{MessageWay::send, to, tag, bytes, {}, {}, 0};
    return fleet.engine(from).send_at_once(*groups_[from], request).has_value();
  }
  std::optional<std::uint64_t> receive_at_once(plan::Rank at, plan::Rank source, std::uint32_t tag,
                                               std::span<std::byte> to) {
    return fleet.engine(at).receive_at_once(*groups_[at], {MessageWay::receive, source, tag, {}, to, {}, 0}, 1);
  }
  void close(plan::Rank rank) {
    fleet.engine(rank).close_messages(*groups_[rank], {EngineErrc::aborted, "the group was left", {}, {}});
  }

  LoopbackFleet fleet;

 private:
  std::vector<std::shared_ptr<MessageGroup>> groups_;
  std::uint64_t last_receive_ = 0;
};

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 31 + seed);
  return all;
}

inline EngineErrc code(MessageMembers::Ended const& ended) {
  return static_cast<EngineErrc>((*ended)->status.error().code.value());
}

inline std::string text(MessageMembers::Ended const& ended) { return (*ended)->status.error().detail; }

}  // namespace chorus::engine::testing
