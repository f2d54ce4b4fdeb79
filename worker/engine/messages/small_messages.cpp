// Small messages: one frame each, without a run. Their content arrives with their envelope; what no receive waits for
// is kept. Messages of a member to itself that are small enough to be kept are delivered in the same way.
#include <algorithm>
#include <utility>

#include "worker/engine/messages/message_failures.hpp"
#include "worker/engine/messages/messages.hpp"

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

bool Messages::send_at_once(MessageGroup& group, MessageRequest const& request) {
  return group.is_open && !group.failure && request.peer != group.membership().rank && send_small(group, request);
}

std::optional<links::MessageFrame> Messages::awaited_next(MessageGroup const& group, MessageRequest const& request) {
  auto const& membership = group.membership();
  if (!group.is_open || group.failure || request.peer == any_source || request.peer == membership.rank)
    return std::nullopt;
  auto const sequence = group.table.next_of(request.peer);
  if (!sequence) return std::nullopt;
  return frame_of(membership, {request.peer, membership.rank}, request.tag, *sequence);
}

bool Messages::send_small(MessageGroup& group, MessageRequest const& request) {
  auto const& membership = group.membership();
  auto const bytes = request.sent.size();
  // A refuse of run 0 would refuse the link.
  if (bytes > links::message_content_max || bytes > limits_.eager_bytes || membership.token == 0) return false;
  auto message = frame_of(membership, {membership.rank, request.peer}, request.tag, group.sequences[request.peer]);
  message.header.length = static_cast<std::uint32_t>(sizeof message.head + bytes);
  message.content = request.sent;
  if (!runs_.send_small_message(group, message)) return false;
  ++group.sequences[request.peer];
  return true;
}

bool Messages::arrived(Identity const& from, links::MessageFrame const& message) {
  auto const& header = message.header;
  auto const group = find(header.run, header.epoch);
  if (group == nullptr) return false;
  auto const source = message.head.sender_rank;
  auto const why = group->failure ? group->failure : misidentified(*group, from, source, message.head.receiver_rank);
  if (why) {
    runs_.refuse_small_messages(from, group->membership(), *why);
    return true;
  }
  links::Envelope const envelope{header.offset, message.content.size(), header.message, 0};
  if (!deliver(group, source, envelope, message.content))
    refuse_small(*group, source, sent_before(*group, source, envelope));
  return true;
}

bool Messages::deliver(GroupPtr const& group, plan::Rank source, links::Envelope const& envelope,
                       std::span<std::byte const> content) {
  if (auto const receive = group->table.meet(source, envelope)) {
    auto const waiting = remove_waiting(*group, *receive);
    give(*group, source, content, waiting->request, waiting->done);
    match(group);
    return true;
  }
  auto const& kept = group->table.kept(source);
  if (kept.messages >= limits_.kept_messages || kept.bytes + content.size() > limits_.kept_bytes) {
    Failure const why{EngineErrc::aborted,
                      "more than " + std::to_string(limits_.kept_messages) + " messages or " +
                          std::to_string(limits_.kept_bytes) + " bytes of " + name_of(*group, source) +
                          " wait for a receive of " + name_of(*group, group->membership().rank),
                      {},
                      {}};
    refuse_small(*group, source, why);
    end(*group, why);
    return true;
  }
  if (!group->table.arrived({source, 0, envelope, {content.begin(), content.end()}})) return false;
  match(group);
  return true;
}

void Messages::give(MessageGroup& group, plan::Rank source, std::span<std::byte const> content,
                    MessageRequest const& request, MessageDone const& done) {
  if (content.size() > request.received.size()) {
    auto const why = too_large(group, source, content.size(), request);
    refuse_small(group, source, why);
    done(to_result(why, true));
    return end(group, why);
  }
  std::copy(content.begin(), content.end(), request.received.begin());
  MessageResult result;
  result.source = source;
  result.bytes = content.size();
  done(std::move(result));
}

void Messages::refuse_small(MessageGroup const& group, plan::Rank source, Failure const& why) {
  auto const& membership = group.membership();
  auto const& peer = membership.members[source];
  if (source != membership.rank) runs_.refuse_small_messages({peer.worker, peer.incarnation}, membership, why);
}

}  // namespace chorus::engine
