// Messages of a member to itself: no run carries them. They are matched in the table like those of other members. Large
// ones are not kept, but wait where they lie.
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
  auto const bytes = request.sent.size();
  auto const sequence = group->sequences[self]++;
  links::Envelope const envelope{sequence, bytes, request.tag, 0};
  if (bytes <= limits_.eager_bytes) {
    static_cast<void>(deliver(group, self, envelope, request.sent));
    return done(group->failure ? to_result(*group->failure, true) : arrived_at_self(*group, bytes));
  }
  auto const run = group->run_to(self, sequence);
  group->to_self.push_back({run, request.sent, std::move(done), 0});
  static_cast<void>(group->table.arrived({self, run, envelope}));
  match(group);
  auto const waits = find_to_self(*group, run);
  if (waits == group->to_self.end()) return;
  waits->watch = group->next_watch();
  runs_.start_run(group->kind(MessageWay::receive, self, 0), {waits->watch, {}, {}, request.deadline},
                  [this, group, run](RunResult ended) { not_received(*group, run, ended); });
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
    message.done(to_result(why, true));
    return end(group, why);
  }
  std::copy(message.content.begin(), message.content.end(), request.received.begin());
  done(arrived_at_self(group, bytes));
  message.done(arrived_at_self(group, bytes));
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
    message.done(to_result(why, true));
  }
}

}  // namespace chorus::engine
