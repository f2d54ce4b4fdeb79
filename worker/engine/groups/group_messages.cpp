// Messages between single members: see MessageGroup.
#include <algorithm>
#include <utility>

#include "worker/engine/groups/group.hpp"
#include "worker/engine/messages/message_group.hpp"

namespace chorus {
namespace {

engine::MessageResult ended_before(engine::Failure const& why) {
  engine::MessageResult result;
  result.status = Error(why.code, why.detail());
  result.ends_the_group = true;
  return result;
}

}  // namespace

// Either end_messages() sees that there are messages and closes them, or the call sees that they have ended.
std::optional<engine::Failure> Group::enter_messages(std::span<engine::MessageRequest> requests) {
  if (!has_messages_.load()) has_messages_.store(true);
  if (auto why = messages_over_.failure()) return why;
  for (auto& request : requests)
    if (request.way == engine::MessageWay::receive) request.number = messages_->draw_receive();
  return std::nullopt;
}

void Group::end_messages(engine::EngineErrc code, std::string const& why) {
  messages_over_.interrupt(code, why);
  if (has_messages_.load()) plane_.close_messages(messages_, Error(code, why));
}

void Group::run_messages(std::span<engine::MessageRequest> requests, std::chrono::milliseconds timeout,
                         std::span<engine::MessageResult> results) {
  if (auto const why = enter_messages(requests)) return std::fill(results.begin(), results.end(), ended_before(*why));
  plane_.run_messages(messages_, requests, timeout, results);
}

std::uint64_t Group::begin_message(engine::MessageRequest request, std::chrono::milliseconds timeout,
                                   engine::MessageDone done) {
  request.deadline = std::chrono::steady_clock::now() + timeout;
  if (auto const why = enter_messages(std::span(&request, 1)))
    done(ended_before(*why));
  else
    plane_.begin_message(messages_, request, std::move(done));
  return request.number;
}

bool Group::cancel_receive(std::uint64_t receive) {
  engine::MessageRequest cancel{.way = engine::MessageWay::cancel, .number = receive};
  engine::MessageResult result;
  plane_.run_messages(messages_, std::span(&cancel, 1), {}, std::span(&result, 1));
  return result.status.has_value();
}

}  // namespace chorus
