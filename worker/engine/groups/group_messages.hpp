// Messages of one member of a group to and from single members.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "worker/engine/data_plane.hpp"
#include "worker/engine/failure/interruption.hpp"
#include "worker/engine/messages/message.hpp"
#include "worker/engine/program/group_membership.hpp"

namespace chorus::engine {

class MessageGroup;

// Any thread. The plane outlives the object.
class GroupMessages {
 public:
  GroupMessages(GroupMembership const& membership, DataPlane& plane);
  GroupMessages(GroupMessages const&) = delete;
  GroupMessages& operator=(GroupMessages const&) = delete;

  // See the functions run_message_at_once, run_messages, begin_message and cancel_receive of Group.
  [[nodiscard]] std::optional<std::uint64_t> run_at_once(MessageRequest const& request);
  void run(std::span<MessageRequest> requests, std::chrono::milliseconds timeout, std::span<MessageResult> results);
  std::uint64_t begin(MessageRequest request, std::chrono::milliseconds timeout, MessageDone done);
  [[nodiscard]] bool cancel(std::uint64_t receive);

  // Fails the messages that are under way, and all later ones.
  void end(EngineErrc code, std::string const& why);

 private:
  // Numbers the receives. Either end() sees that there are messages and closes them, or the call sees that they have
  // ended.
  [[nodiscard]] std::optional<Failure> enter(std::span<MessageRequest> requests);

  DataPlane& plane_;
  std::shared_ptr<MessageGroup> const messages_;
  Interruption over_;
  std::atomic<bool> has_any_{false};
};

}  // namespace chorus::engine
