// The messages of all groups of an engine: begins them, matches them with receives, and ends them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/messages/message_group.hpp"
#include "worker/engine/transport/connection.hpp"

namespace chorus::engine {

// What waits here for a receive, of the messages of a member to itself; as early runs do of other members' messages.
struct MessageLimits {
  std::uint64_t eager_bytes = 256 * 1024;  // a larger message is not kept: its send ends when it is received
  std::size_t kept_messages = 1024;
  std::uint64_t kept_bytes = 32 << 20;
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
  // Ends the epoch here. Later requests fail.
  void close(MessageGroup& group, Failure const& why);

  // The open of a message that no run awaits. False: no member here calls messages of that epoch yet.
  bool arrived(Identity const& from, links::Open const& open, std::uint32_t epoch, links::Envelope const& envelope,
               std::uint64_t run);
  // A message of the epoch was refused by its receiver, or given up by its sender, or lost with its link.
  void failed(std::uint64_t token, std::uint32_t epoch, Failure const& why);

 private:
  using GroupPtr = std::shared_ptr<MessageGroup>;

  void send(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  void receive(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  [[nodiscard]] bool cancel(MessageGroup& group, std::uint64_t receive);
  void take(GroupPtr const& group, MessageTable::Arrival const& arrival, MessageRequest const& request,
            MessageDone done);
  void match(GroupPtr const& group);
  // The part about messages of a member to itself is in messages_to_self.cpp.
  void send_to_self(GroupPtr const& group, MessageRequest const& request, MessageDone done);
  void keep_to_self(MessageGroup& group, MessageGroup::ToSelf& message);
  void take_from_self(MessageGroup& group, std::uint64_t run, MessageRequest const& request, MessageDone const& done);
  void not_received(MessageGroup& group, std::uint64_t run, RunResult const& ended);
  void end_to_self(MessageGroup& group, Failure const& why);
  void start(GroupPtr const& group, std::shared_ptr<RunKind> kind, RunCall const& call, MessageResult result,
             MessageDone done);
  void watch_ended(MessageGroup& group, std::uint64_t watch, RunResult ended);
  void end(MessageGroup& group, Failure const& why);
  [[nodiscard]] MessageGroup* find(std::uint64_t token, std::uint32_t epoch) const;

  MessageRuns& runs_;
  MessageLimits const limits_;
  std::vector<GroupPtr> groups_;
};

}  // namespace chorus::engine
