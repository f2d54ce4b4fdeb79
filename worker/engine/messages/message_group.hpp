// The messages of one member in one epoch of a group.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/messages/message_runs.hpp"
#include "worker/engine/messages/messages_to_self.hpp"
#include "worker/engine/transport/connection_table.hpp"

namespace chorus::engine {

// Shared by the callers, which number their receives, and the engine. Unless said otherwise: data thread only.
class MessageGroup {
 public:
  explicit MessageGroup(GroupMembership membership);
  MessageGroup(MessageGroup const&) = delete;
  MessageGroup& operator=(MessageGroup const&) = delete;

  // Any thread.
  [[nodiscard]] GroupMembership const& membership() const { return membership_; }
  // Any thread. A number for a receive, by which it can be cancelled; never 0.
  [[nodiscard]] std::uint64_t draw_receive() { return receives_.fetch_add(1); }
  // Any thread. Requests that were handed to the data thread and have not begun.
  std::atomic<std::uint64_t> handed_over{0};

  // The run of the n-th message from this member to a peer, or from a peer to this member.
  [[nodiscard]] std::uint64_t run_to(plan::Rank peer, std::uint64_t sequence) const;
  // A number for a watch.
  [[nodiscard]] std::uint64_t next_watch();

  // The kind of runs of these messages; kept for the next one.
  [[nodiscard]] std::shared_ptr<RunKind> kind(MessageWay way, plan::Rank peer, std::uint64_t bytes);

  // By peer: position of the next message to it among all messages to it. A message has its position when it begins.
  std::vector<std::uint64_t> sequences;
  MessageTable table;
  // A receive without a message; MessageRequest::number is its number in the table.
  struct Waiting {
    MessageRequest request;
    MessageDone done;
    std::uint64_t watch = 0;  // 0: none yet
    bool was_seen = false;    // by WaitingReceives::watch()
  };
  std::deque<Waiting> waiting;
  std::vector<std::uint64_t> under_way;        // runs of messages
  std::vector<ConnectionTable::Route> routes;  // by peer; used by the engine
  MessagesToSelf to_self;
  std::optional<Failure> failure;  // has ended the epoch
  bool is_open = false;            // listed by Messages

 private:
  struct Kept {
    MessageWay way;
    plan::Rank peer;
    std::uint64_t bytes;
    std::shared_ptr<RunKind> kind;
  };

  GroupMembership const membership_;
  std::vector<std::string> const channels_;  // by peer: names that run numbers are made of
  std::string const watches_;
  std::atomic<std::uint64_t> receives_{1};
  std::uint64_t watched_ = 0;
  std::vector<Kept> kept_;  // the most recently used last
};

}  // namespace chorus::engine
