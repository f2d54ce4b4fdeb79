// The messages of all groups of an engine: begins them, matches them with receives, and ends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "worker/engine/messages/message_group.hpp"
#include "worker/engine/messages/waiting_receives.hpp"
#include "worker/engine/transport/connection.hpp"

namespace chorus::engine {

// What waits here for a receive, of small messages and of those of a member to itself; early runs have such limits too.
struct MessageLimits {
  std::uint64_t eager_bytes = 256 * 1024;  // a larger message is not kept: its send ends when it is received
  std::size_t kept_messages = 1024;        // of one source
  std::uint64_t kept_bytes = 32 << 20;     // of one source
};

// Data thread only. A failure of a message, other than a receive that no message has met until its deadline, ends the
// messages of the epoch on both members: all others of it fail with the same reason.
class Messages {
 public:
  // The runs outlive this object.
  Messages(MessageRuns& runs, MessageLimits limits);
  Messages(Messages const&) = delete;
  Messages& operator=(Messages const&) = delete;

  // The request is valid: the peer is a member, or any_source of a receive.
  void begin(std::shared_ptr<MessageGroup> const& group, MessageRequest const& request, MessageDone done);
  // Sends a small message without begin(), if that is possible at once.
  [[nodiscard]] bool send_at_once(MessageGroup& group, MessageRequest const& request);
  // Ends the epoch here. Later requests fail.
  void close(MessageGroup& group, Failure const& why);

  // The open of a message that no run awaits. False: no member here calls messages of that epoch yet.
  bool arrived(Identity const& from, links::Open const& open, std::uint32_t epoch, links::Envelope const& envelope,
               std::uint64_t run);
  // A small message. False: as above.
  bool arrived(Identity const& from, links::MessageFrame const& message);
  // A message of the epoch was refused by its receiver, or given up by its sender, or lost with its link. Ends an epoch
  // that has not begun here as soon as it does.
  void failed(std::uint64_t token, std::uint32_t epoch, Failure const& why);

  // See WaitingReceives::watch().
  void watch_receives(bool all) { receives_.watch(groups_, all); }
  [[nodiscard]] bool has_unwatched() const { return receives_.has_unwatched(); }

 private:
  using GroupPtr = std::shared_ptr<MessageGroup>;

  void open(GroupPtr const& group);
  void send(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  void receive(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  [[nodiscard]] bool cancel(MessageGroup& group, std::uint64_t receive);
  void take(GroupPtr const& group, MessageTable::Arrival const& arrival, MessageRequest const& request,
            MessageDone done);
  void match(GroupPtr const& group);
  [[nodiscard]] bool send_small(MessageGroup& group, MessageRequest const& request);
  // Gives a message whose content is here to the receive that waits for it, or keeps a copy. False: sent before.
  [[nodiscard]] bool deliver(GroupPtr const& group, plan::Rank source, links::Envelope const& envelope,
                             std::span<std::byte const> content);
  void give(MessageGroup& group, plan::Rank source, std::span<std::byte const> content, MessageRequest const& request,
            MessageDone const& done);
  void refuse_small(MessageGroup const& group, plan::Rank source, Failure const& why);
  void send_to_self(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  void take_from_self(MessageGroup& group, std::uint64_t run, MessageRequest const& request, MessageDone const& done);
  void not_received(MessageGroup& group, std::uint64_t run, RunResult const& ended);
  void end_to_self(MessageGroup& group, Failure const& why);
  void start(GroupPtr const& group, std::shared_ptr<RunKind> kind, RunCall const& call, MessageResult result,
             MessageDone done);
  void watch_failed(MessageGroup& group, MessageGroup::Waiting const& receive, RunResult const& watch);
  void end(MessageGroup& group, Failure const& why);
  [[nodiscard]] GroupPtr find(std::uint64_t token, std::uint32_t epoch) const;  // null: none here has begun

  MessageRuns& runs_;
  MessageLimits const limits_;
  std::vector<GroupPtr> groups_;
  WaitingReceives receives_;
  // The first failure of each of the latest epochs that have not begun here.
  struct EarlyFailure {
    std::uint64_t token = 0;
    std::uint32_t epoch = 0;
    Failure why;
  };
  static constexpr std::size_t early_failures_max = 64;
  std::deque<EarlyFailure> early_failures_;
};

}  // namespace chorus::engine
