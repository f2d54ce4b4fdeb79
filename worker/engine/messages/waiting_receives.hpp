// Receives that wait for a message: their deadlines, and the looks at their sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "worker/engine/messages/message_group.hpp"

namespace chorus::engine {

// Those of all groups, which the groups hold. A receive that waits has neither a deadline nor a look at its source
// until it gets its watch, a run that costs more than a small message. Data thread only.
class WaitingReceives {
 public:
  // The watch of a receive has failed. The receive waits no longer.
  using Failed = std::function<void(MessageGroup& group, MessageGroup::Waiting const& receive, RunResult const& watch)>;

  // The runs outlive this object.
  WaitingReceives(MessageRuns& runs, Failed failed);
  WaitingReceives(WaitingReceives const&) = delete;
  WaitingReceives& operator=(WaitingReceives const&) = delete;

  void add(MessageGroup& group, MessageRequest const& request, MessageDone done);
  // Ends the watch. Empty: no such receive waits.
  [[nodiscard]] std::optional<MessageGroup::Waiting> remove(MessageGroup& group, std::uint64_t receive);
  // Gives a watch to those that have waited since the call before, or to all. A watch that cannot begin fails at once.
  void watch(std::span<std::shared_ptr<MessageGroup> const> groups, bool all);
  [[nodiscard]] bool has_unwatched() const { return unwatched_ != 0; }

 private:
  void watch_ended(MessageGroup& group, std::uint64_t receive, RunResult const& ended);

  MessageRuns& runs_;
  Failed const failed_;
  std::size_t unwatched_ = 0;
};

}  // namespace chorus::engine
