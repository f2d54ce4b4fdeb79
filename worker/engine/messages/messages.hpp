// The messages of all groups of an engine: begins them, matches them with receives, and ends them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/engine/messages/message_group.hpp"
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
  Messages(MessageRuns& runs, MessageLimits limits) : runs_(runs), limits_(limits) {}
  Messages(Messages const&) = delete;
  Messages& operator=(Messages const&) = delete;

  // The request is valid: the peer is a member, or any_source of a receive.
  void begin(std::shared_ptr<MessageGroup> const& group, MessageRequest const& request, MessageDone done);
  // Sends a small message without begin(), if that is possible at once.
  [[nodiscard]] bool send_at_once(MessageGroup& group, MessageRequest const& request);
  // The small message that a receive takes, if the next one of its source is sure to be that: nothing else waits. When
  // it has come, table.pass_next() follows. Empty: begin() the receive.
  [[nodiscard]] static std::optional<links::MessageFrame> awaited_next(MessageGroup const& group,
                                                                       MessageRequest const& request);
  // Ends the epoch here. Later requests fail.
  void close(MessageGroup& group, Failure const& why);

  // The open of a message that no run awaits. False: no member here calls messages of that epoch yet.
  bool arrived(Identity const& from, links::Open const& open, std::uint32_t epoch, links::Envelope const& envelope,
               std::uint64_t run);
  // A small message. False: as above.
  bool arrived(Identity const& from, links::MessageFrame const& message);
  // A message of the epoch was refused by its receiver, or given up by its sender, or lost with its link.
  void failed(std::uint64_t token, std::uint32_t epoch, Failure const& why);

  // A receive that waits has neither a deadline nor a look at its source until it gets its watch, a run that costs more
  // than a small message. So only those that have waited since the call before get theirs, or all.
  void watch_receives(bool all);
  [[nodiscard]] bool has_unwatched() const { return unwatched_ != 0; }

 private:
  using GroupPtr = std::shared_ptr<MessageGroup>;

  void send(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  void receive(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  [[nodiscard]] bool cancel(MessageGroup& group, std::uint64_t receive);
  void take(GroupPtr const& group, MessageTable::Arrival const& arrival, MessageRequest const& request,
            MessageDone done);
  void match(GroupPtr const& group);
  // The part about small messages is in small_messages.cpp.
  [[nodiscard]] bool send_small(MessageGroup& group, MessageRequest const& request);
  // Gives a message whose content is here to the receive that waits for it, or keeps a copy. False: sent before.
  [[nodiscard]] bool deliver(GroupPtr const& group, plan::Rank source, links::Envelope const& envelope,
                             std::span<std::byte const> content);
  void give(MessageGroup& group, plan::Rank source, std::span<std::byte const> content, MessageRequest const& request,
            MessageDone const& done);
  // Takes a receive from those that wait, and ends its watch.
  [[nodiscard]] std::optional<MessageGroup::Waiting> remove_waiting(MessageGroup& group, std::uint64_t receive);
  void refuse_small(MessageGroup const& group, plan::Rank source, Failure const& why);
  // The part about messages of a member to itself is in messages_to_self.cpp.
  void send_to_self(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  void take_from_self(MessageGroup& group, std::uint64_t run, MessageRequest const& request, MessageDone const& done);
  void not_received(MessageGroup& group, std::uint64_t run, RunResult const& ended);
  void end_to_self(MessageGroup& group, Failure const& why);
  void start(GroupPtr const& group, std::shared_ptr<RunKind> kind, RunCall const& call, MessageResult result,
             MessageDone done);
  void watch_ended(MessageGroup& group, std::uint64_t receive, RunResult const& ended);
  void end(MessageGroup& group, Failure const& why);
  [[nodiscard]] GroupPtr find(std::uint64_t token, std::uint32_t epoch) const;  // null: none here has begun

  MessageRuns& runs_;
  MessageLimits const limits_;
  std::vector<GroupPtr> groups_;
  std::size_t unwatched_ = 0;  // receives that wait without a watch
};

}  // namespace chorus::engine
