#include "worker/engine/messages/messages.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "worker/engine/messages/message_failures.hpp"
#include "worker/engine/messages/small_messages.hpp"

namespace chorus::engine {
namespace {

std::string wanted(MessageGroup const& group, MessageRequest const& request) {
  auto const source = request.peer == any_source ? std::string("any rank") : name_of(group, request.peer);
  return "no message with tag " + std::to_string(request.tag) + " from " + source + ": ";
}

MessageResult message_of(plan::Rank source, std::uint64_t bytes) {
  MessageResult result;
  result.source = source;
  result.bytes = bytes;
  return result;
}

MessageResult arrived_at_self(MessageGroup const& group, std::uint64_t bytes) {
  return message_of(group.membership().rank, bytes);
}

}  // namespace

Messages::Messages(MessageRuns& runs, MessageLimits limits)
    : runs_(runs),
      limits_(limits),
      receives_(runs, [this](MessageGroup& group, MessageGroup::Waiting const& receive, RunResult const& watch) {
        watch_failed(group, receive, watch);
      }) {}

Messages::GroupPtr Messages::find(std::uint64_t token, std::uint32_t epoch) const {
  for (auto const& group : groups_)
    if (group->membership().token == token && group->membership().epoch == epoch) return group;
  return nullptr;
}

void Messages::open(GroupPtr const& group) {
  auto const token = group->membership().token;
  auto const epoch = group->membership().epoch;
  group->is_open = true;
  groups_.push_back(group);
  auto const failed = std::ranges::find_if(
      early_failures_, [=](auto const& early) { return early.token == token && early.epoch == epoch; });
  if (failed != early_failures_.end()) {
    end(*group, failed->why);
    early_failures_.erase(failed);
  }
  runs_.find_early_messages(token, epoch);
}

void Messages::begin(GroupPtr const& group, MessageRequest const& request, MessageDone done) {
  if (!group->is_open && !group->failure) open(group);
  if (group->failure) return done(to_result(*group->failure, true));
  switch (request.way) {
    case MessageWay::send:
      return send(group, request, std::move(done));
    case MessageWay::receive:
      return receive(group, request, std::move(done));
    case MessageWay::cancel:
      MessageResult result;
      if (!cancel(*group, request.number)) result.status = Error(EngineErrc::aborted, "no receive waits");
      return done(std::move(result));
  }
}

bool Messages::cancel(MessageGroup& group, std::uint64_t receive) {
  auto const cancelled = receives_.remove(group, receive);
  if (!cancelled) return false;
  group.table.forget(receive);
  MessageResult result;
  result.status = Error(EngineErrc::aborted, "the receive was cancelled");
  result.was_cancelled = true;
  cancelled->done(std::move(result));
  return true;
}

void Messages::close(MessageGroup& group, Failure const& why) {
  end(group, why);
  std::erase_if(groups_, [&group](GroupPtr const& each) { return each.get() == &group; });
}

void Messages::send(GroupPtr const& group, MessageRequest const& request, MessageDone done) {
  auto const& membership = group->membership();
  if (request.peer == membership.rank) return send_to_self(group, request, std::move(done));
  bool const is_sent = send_small(*group, request);
  auto const bytes = request.sent.size();
  auto result = message_of(membership.rank, bytes);
  if (is_sent) return done(std::move(result));
  auto const sequence = group->sequences[request.peer]++;
  RunCall const call{group->run_to(request.peer, sequence),
                     request.sent,
                     {},
                     request.deadline,
                     links::Envelope{sequence, bytes, request.tag, 0}};
  start(group, group->kind(MessageWay::send, request.peer, bytes), call, std::move(result), std::move(done));
}

bool Messages::send_at_once(MessageGroup& group, MessageRequest const& request) {
  return group.is_open && !group.failure && request.peer != group.membership().rank && send_small(group, request);
}

bool Messages::send_small(MessageGroup& group, MessageRequest const& request) {
  auto const message = small_message(group, request, limits_.eager_bytes);
  if (!message || !runs_.send_small_message(group, *message)) return false;
  ++group.sequences[request.peer];
  return true;
}

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
  group->to_self.add({run, request.sent, std::move(done)});
  static_cast<void>(group->table.arrived({self, run, envelope}));
  match(group);
  auto* const waits = group->to_self.find(run);
  if (waits == nullptr) return;
  waits->watch = group->next_watch();
  runs_.start_run(group->kind(MessageWay::receive, self, 0), {waits->watch, {}, {}, request.deadline},
                  [this, group, run](RunResult ended) { not_received(*group, run, ended); });
}

void Messages::start(GroupPtr const& group, std::shared_ptr<RunKind> kind, RunCall const& call, MessageResult result,
                     MessageDone done) {
  group->under_way.push_back(call.run);
  runs_.start_run(std::move(kind), call,
                  [this, group, run = call.run, result = std::move(result), done = std::move(done)](RunResult ended) {
                    std::erase(group->under_way, run);
                    if (ended.status.has_value()) return done(result);
                    auto const why = to_failure(ended);
                    done(to_result(why, true));
                    end(*group, why);
                  });
}

void Messages::receive(GroupPtr const& group, MessageRequest const& request, MessageDone done) {
  if (auto const arrival = group->table.take(request.peer, request.tag))
    return take(group, *arrival, request, std::move(done));
  receives_.add(*group, request, std::move(done));
}

void Messages::watch_failed(MessageGroup& group, MessageGroup::Waiting const& receive, RunResult const& watch) {
  auto why = to_failure(watch);
  bool const ends_the_group = why.code != EngineErrc::deadline_exceeded;
  why.text = wanted(group, receive.request) + why.text;
  receive.done(to_result(why, ends_the_group));
  if (ends_the_group) end(group, why);
}

bool Messages::arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                       links::Envelope const& envelope, std::uint64_t run) {
  auto const group = find(open.token, epoch);
  if (group == nullptr) return false;
  auto const source = open.sender_rank;
  if (group->failure) {
    runs_.refuse_message(run, *group->failure);
  } else if (auto const why = misidentified(*group, from, source, open.receiver_rank)) {
    runs_.refuse_message(run, *why);
  } else if (!group->table.arrived({source, run, envelope})) {
    runs_.refuse_message(run, sent_before(*group, source, envelope));
  } else {
    match(group);
  }
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
    auto const waiting = receives_.remove(*group, *receive);
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
  done(message_of(source, content.size()));
}

void Messages::match(GroupPtr const& group) {
  while (auto const match = group->table.match()) {
    auto waiting = receives_.remove(*group, match->id);
    take(group, match->arrival, waiting->request, std::move(waiting->done));
  }
}

void Messages::take(GroupPtr const& group, MessageTable::Arrival const& arrival, MessageRequest const& request,
                    MessageDone done) {
  if (arrival.run == 0) return give(*group, arrival.source, arrival.content, request, done);
  if (arrival.source == group->membership().rank) return take_from_self(*group, arrival.run, request, done);
  auto const bytes = arrival.envelope.bytes;
  if (bytes > request.received.size()) {
    auto const why = too_large(*group, arrival.source, bytes, request);
    runs_.refuse_message(arrival.run, why);
    done(to_result(why, true));
    return end(*group, why);
  }
  start(group, group->kind(MessageWay::receive, arrival.source, bytes),
        {arrival.run, {}, request.received.first(bytes), request.deadline}, message_of(arrival.source, bytes),
        std::move(done));
}

void Messages::take_from_self(MessageGroup& group, std::uint64_t run, MessageRequest const& request,
                              MessageDone const& done) {
  auto const message = *group.to_self.remove(run);
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
  if (ended.status.has_value()) return;
  auto const message = group.to_self.remove(run);
  if (!message) return;
  group.table.withdraw(run);
  auto why = to_failure(ended);
  why.text = name_of(group, group.membership().rank) + " has not received the " +
             std::to_string(message->content.size()) + " bytes that it sends itself: " + why.text;
  message->done(to_result(why, true));
  end(group, why);
}

void Messages::failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  if (auto const group = find(token, epoch)) return end(*group, why);
  // The first failure of an epoch counts; repeated ones would push out those of other epochs.
  for (auto const& early : early_failures_)
    if (early.token == token && early.epoch == epoch) return;
  if (early_failures_.size() == early_failures_max) early_failures_.pop_front();
  early_failures_.push_back({token, epoch, why});
}

void Messages::end(MessageGroup& group, Failure const& why) {
  if (group.failure) return;
  group.failure = why;
  group.failure->text = "the messages of this epoch have ended: " + why.detail();
  group.failure->reporter.clear();
  while (!group.waiting.empty()) {
    auto const receive = receives_.remove(group, group.waiting.front().request.number);
    group.table.forget(receive->request.number);
    receive->done(to_result(why, true));
  }
  for (auto const run : std::vector(group.under_way)) runs_.fail_message(run, why);
  end_to_self(group, why);
  std::set<plan::Rank> of_small;  // sources
  for (auto const& arrival : group.table.take_all()) {
    if (arrival.run != 0) runs_.refuse_message(arrival.run, why);
    if (arrival.run == 0) of_small.insert(arrival.source);
  }
  for (auto const source : of_small) refuse_small(group, source, why);
}

void Messages::end_to_self(MessageGroup& group, Failure const& why) {
  for (auto const& message : group.to_self.remove_all()) {
    group.table.withdraw(message.run);
    if (message.watch != 0) runs_.end_watch(message.watch);
    message.done(to_result(why, true));
  }
}

void Messages::refuse_small(MessageGroup const& group, plan::Rank source, Failure const& why) {
  auto const& membership = group.membership();
  auto const& peer = membership.members[source];
  if (source != membership.rank) runs_.refuse_small_messages({peer.worker, peer.incarnation}, membership, why);
}

}  // namespace chorus::engine
