#include "worker/engine/groups/group_messages.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/messages/message_group.hpp"

namespace chorus::engine {
namespace {

MessageResult ended_before(Failure const& why) {
  MessageResult result;
  result.status = Error(why.code, why.detail());
  result.ends_the_group = true;
  return result;
}

}  // namespace

GroupMessages::GroupMessages(GroupMembership const& membership, DataPlane& plane)
    : plane_(plane), messages_(std::make_shared<MessageGroup>(membership)) {}

std::optional<std::uint64_t> GroupMessages::run_at_once(MessageRequest const& request) {
  if (!has_any_.load()) has_any_.store(true);
  return over_.is_set() ? std::nullopt : plane_.run_at_once(*messages_, request);
}

std::optional<Failure> GroupMessages::enter(std::span<MessageRequest> requests) {
  if (!has_any_.load()) has_any_.store(true);
  if (auto why = over_.failure()) return why;
  for (auto& request : requests)
    if (request.way == MessageWay::receive) request.number = messages_->draw_receive();
  return std::nullopt;
}

void GroupMessages::end(EngineErrc code, std::string const& why) {
  over_.interrupt(code, why);
  if (has_any_.load()) plane_.close_messages(messages_, Error(code, why));
}

void GroupMessages::run(std::span<MessageRequest> requests, std::chrono::milliseconds timeout,
                        std::span<MessageResult> results) {
  if (auto const why = enter(requests)) return std::fill(results.begin(), results.end(), ended_before(*why));
  plane_.run_messages(messages_, requests, timeout, results);
}

std::uint64_t GroupMessages::begin(MessageRequest request, std::chrono::milliseconds timeout, MessageDone done) {
  request.deadline = std::chrono::steady_clock::now() + timeout;
  if (auto const why = enter(std::span(&request, 1)))
    done(ended_before(*why));
  else
    plane_.begin_message(messages_, request, std::move(done));
  return request.number;
}

bool GroupMessages::cancel(std::uint64_t receive) {
  MessageRequest cancel{.way = MessageWay::cancel, .number = receive};
  MessageResult result;
  plane_.run_messages(messages_, std::span(&cancel, 1), {}, std::span(&result, 1));
  return result.status.has_value();
}

}  // namespace chorus::engine
