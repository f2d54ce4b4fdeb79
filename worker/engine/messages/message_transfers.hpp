// How messages are transferred: by runs of their own or, if they are small, on connections at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "worker/engine/messages/messages.hpp"
#include "worker/engine/run/run_ends.hpp"

namespace chorus::engine {

// Used on the data thread only, while ConnectionOwner::settle() is held. The constructor's arguments outlive the
// object.
class MessageTransfers final : private MessageRuns {
 public:
  using StartRun = std::function<void(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done)>;

  MessageTransfers(ConnectionOwner& owner, RunTable& runs, ConnectionTable& connections, RunEnds& ends,
                   MemoryHealth const& memory, StartRun start);

  [[nodiscard]] Messages& messages() { return messages_; }
  [[nodiscard]] Messages const& messages() const { return messages_; }

  // See Engine. Nothing else is under way.
  [[nodiscard]] std::optional<std::uint64_t> receive_at_once(MessageGroup& group, MessageRequest const& request,
                                                             unsigned polls);

 private:
  void start_run(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done) override {
    start_(std::move(kind), call, std::move(done));
  }
  void end_watch(std::uint64_t run) override;
  void fail_message(std::uint64_t run, Failure const& why) override { ends_.fail(run, why); }
  void refuse_message(std::uint64_t run, Failure const& why) override;
  void find_early_messages(std::uint64_t token, std::uint32_t epoch) override;
  [[nodiscard]] bool send_small_message(MessageGroup& group, links::MessageFrame const& message) override;
  void refuse_small_messages(Identity const& peer, GroupMembership const& membership, Failure const& why) override;
  void watch_soon() override;

  [[nodiscard]] ConnectionTable::Route const& route(MessageGroup& group, plan::Rank peer);

  ConnectionOwner& owner_;
  RunTable& runs_;
  ConnectionTable& connections_;
  RunEnds& ends_;
  MemoryHealth const& memory_;
  StartRun const start_;
  Messages messages_;
};

}  // namespace chorus::engine
