// Messages of a member to itself: no run carries them. They are matched in the table like those of other members, and
// copied once or, if they have waited in a copy, twice.
#include <algorithm>
#include <utility>

#include "worker/engine/messages/message_failures.hpp"
#include "worker/engine/messages/messages.hpp"

namespace chorus::engine {
namespace {

MessageResult arrived_at_self(MessageGroup const& group, std::uint64_t bytes) {
  MessageResult result;
  result.source = group.membership().rank;
  result.bytes = bytes;
  return result;
}

auto find_to_self(MessageGroup& group, std::uint64_t run) {
  return std::ranges::find(group.to_self, run, &MessageGroup::ToSelf::run);
}

}  // namespace

void Messages::send_to_self(GroupPtr const& group, MessageRequest const& request, MessageDone done) {
  auto const self = group->membership().rank;
  auto const run = group->run_to(self, request.sequence);
  auto const bytes = request.sent.size();
  group->to_self.push_back({run, request.sent, {}, std::move(done), 0});
  static_cast<void>(group->table.arrived({self, run, {request.sequence, bytes, request.tag, 0}}));
  match(group);
  auto const waits = find_to_self(*group, run);
  if (waits == group->to_self.end()) return;
  if (bytes <= limits_.eager_bytes) return keep_to_self(*group, *waits);
  waits->watch = group->next_watch();
  runs_.start_run(group->kind(MessageWay::receive, self, 0), {waits->watch, {}, {}, request.deadline},
                  [this, group, run](RunResult ended) { not_received(*group, run, ended); });
}

void Messages::keep_to_self(MessageGroup& group, MessageGroup::ToSelf& message) {
  std::size_t messages = 0;
  auto bytes = message.content.size();
  for (auto const& other : group.to_self) {
    if (other.done != nullptr) continue;
    ++messages;
    bytes += other.content.size();
  }
  auto const done = std::exchange(message.done, nullptr);
  if (messages >= limits_.kept_messages || bytes > limits_.kept_bytes) {
    auto const self = group.membership().rank;
    Failure const why{EngineErrc::aborted,
                      "more than " + std::to_string(limits_.kept_messages) + " messages or " +
                          std::to_string(limits_.kept_bytes) + " bytes that " + name_of(group, self) +
                          " has sent itself wait for a receive",
                      {self},
                      {}};
    done(to_result(why, true));
    return end(group, why);
  }
  message.kept.assign(message.content.begin(), message.content.end());
  message.content = message.kept;
  done(arrived_at_self(group, message.content.size()));
}

void Messages::take_from_self(MessageGroup& group, std::uint64_t run, MessageRequest const& request,
                              MessageDone const& done) {
  auto const found = find_to_self(group, run);
  auto const message = std::move(*found);
  group.to_self.erase(found);
  if (message.watch != 0) runs_.end_watch(message.watch);
  auto const bytes = message.content.size();
  if (bytes > request.received.size()) {
    auto const why = too_large(group, group.membership().rank, bytes, request);
    done(to_result(why, true));
    if (message.done) message.done(to_result(why, true));
    return end(group, why);
  }
  std::ranges::copy(message.content, request.received.begin());
  done(arrived_at_self(group, bytes));
  if (message.done) message.done(arrived_at_self(group, bytes));
}

void Messages::not_received(MessageGroup& group, std::uint64_t run, RunResult const& ended) {
  auto const found = find_to_self(group, run);
  if (found == group.to_self.end() || ended.status.has_value()) return;
  auto const message = std::move(*found);
  group.to_self.erase(found);
  group.table.withdraw(run);
  auto why = to_failure(ended);
  why.text = name_of(group, group.membership().rank) + " has not received the " +
             std::to_string(message.content.size()) + " bytes that it sends itself: " + why.text;
  message.done(to_result(why, true));
  end(group, why);
}

void Messages::end_to_self(MessageGroup& group, Failure const& why) {
  for (auto const& message : std::exchange(group.to_self, {})) {
    group.table.withdraw(message.run);
    if (message.watch != 0) runs_.end_watch(message.watch);
    if (message.done) message.done(to_result(why, true));
  }
}

}  // namespace chorus::engine
