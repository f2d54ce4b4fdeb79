// The runs that carry messages: how they look, and what the engine does with them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/messages/message.hpp"
#include "worker/engine/program/group_membership.hpp"
#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/run/run_kind.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine {

// The run of a message of `bytes` bytes to or from `peer`; a watch for messages of `peer`, or of all members with
// any_source, receives nothing and is opened by no peer. A watch for this member itself has nobody to wait for.
[[nodiscard]] RunSpec message_run(GroupMembership const& membership, MessageWay way, plan::Rank peer,
                                  std::uint64_t bytes);

// True for a watch: to stand still is all that it does.
[[nodiscard]] bool is_watch(RunSpec const& spec);

// True for a watch that no other member can end: nothing but its deadline does, or MessageRuns::end_watch().
[[nodiscard]] bool is_watch_of_nobody(RunSpec const& spec);

class MessageGroup;

// What the engine does for Messages. Data thread only.
class MessageRuns {
 public:
  virtual void start_run(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done) = 0;
  // Ends a run well, wherever it stands; no effect if it has ended.
  virtual void end_watch(std::uint64_t run) = 0;
  // Fails a run and tells its peer; no effect if it has ended.
  virtual void fail_message(std::uint64_t run, Failure const& why) = 0;
  // The same for a message that was not received: drops what has arrived of it.
  virtual void refuse_message(std::uint64_t run, Failure const& why) = 0;
  // Sends a small message of the group at once. False: it needs a run.
  [[nodiscard]] virtual bool send_small_message(MessageGroup& group, links::MessageFrame const& message) = 0;
  // Tells the peer that its small messages of this epoch have failed.
  virtual void refuse_small_messages(Identity const& peer, GroupMembership const& membership, Failure const& why) = 0;
  // A receive waits: Messages::watch_receives() is to be called soon.
  virtual void watch_soon() = 0;
  // Calls Messages::arrived() for the messages of the epoch that wait in the connections.
  virtual void find_early_messages(std::uint64_t token, std::uint32_t epoch) = 0;

 protected:
  ~MessageRuns() = default;
};

}  // namespace chorus::engine
