#include "worker/engine/messages/small_messages.hpp"

#include <algorithm>

namespace chorus::engine {
namespace {

links::MessageFrame frame_of(GroupMembership const& membership, links::MessageHead head, std::uint32_t tag,
                             std::uint64_t sequence) {
  links::MessageFrame message{{}, head, {}};
  message.header.type = links::FrameType::message;
  message.header.epoch = membership.epoch;
  message.header.run = membership.token;
  message.header.message = tag;
  message.header.offset = sequence;
  return message;
}

}  // namespace

std::optional<links::MessageFrame> small_message(MessageGroup const& group, MessageRequest const& request,
                                                 std::uint64_t limit) {
  auto const& membership = group.membership();
  auto const bytes = request.sent.size();
  // A refuse of run 0 would refuse the link.
  if (bytes > std::min<std::uint64_t>(links::message_content_max, limit) || membership.token == 0) return std::nullopt;
  auto message = frame_of(membership, {membership.rank, request.peer}, request.tag, group.sequences[request.peer]);
  message.header.length = static_cast<std::uint32_t>(sizeof message.head + bytes);
  message.content = request.sent;
  return message;
}

std::optional<links::MessageFrame> awaited_next(MessageGroup const& group, MessageRequest const& request) {
  auto const& membership = group.membership();
  if (!group.is_open || group.failure || request.peer == any_source || request.peer == membership.rank)
    return std::nullopt;
  auto const sequence = group.table.next_of(request.peer);
  if (!sequence) return std::nullopt;
  return frame_of(membership, {request.peer, membership.rank}, request.tag, *sequence);
}

}  // namespace chorus::engine
