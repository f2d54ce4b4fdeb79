#include "worker/engine/messages/messages.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/messages/message_failures.hpp"

namespace chorus::engine {
namespace {

std::string wanted(MessageGroup const& group, MessageRequest const& request) {
  auto const source = request.peer == any_source ? std::string("any rank") : name_of(group, request.peer);
  return "no message with tag " + std::to_string(request.tag) + " from " + source + ": ";
}

}  // namespace

MessageGroup* Messages::find(std::uint64_t token, std::uint32_t epoch) const {
  for (auto const& group : groups_)
    if (group->membership().token == token && group->membership().epoch == epoch) return group.get();
  return nullptr;
}

void Messages::begin(GroupPtr const& group, MessageRequest const& request, MessageDone done) {
  if (!group->is_open && !group->failure) {
    group->is_open = true;
    groups_.push_back(group);
    runs_.find_early_messages(group->membership().token, group->membership().epoch);
  }
  if (group->failure) return done(to_result(*group->failure, true));
  switch (request.way) {
    case MessageWay::send:
      return send(group, request, std::move(done));
    case MessageWay::receive:
      return receive(group, request, std::move(done));
    case MessageWay::cancel:
      MessageResult result;
      if (!cancel(*group, request.sequence)) result.status = Error(EngineErrc::aborted, "no receive waits");
      return done(std::move(result));
  }
}

bool Messages::cancel(MessageGroup& group, std::uint64_t receive) {
  auto const found = std::find_if(group.waiting.begin(), group.waiting.end(), [receive](auto const& waiting) {
    return waiting.second.request.sequence == receive;
  });
  if (found == group.waiting.end()) return false;
  auto const watch = found->first;
  auto const done = std::move(found->second.done);
  group.waiting.erase(found);
  group.table.forget(watch);
  runs_.end_watch(watch);
  MessageResult result;
  result.status = Error(EngineErrc::aborted, "the receive was cancelled");
  result.was_cancelled = true;
  done(std::move(result));
  return true;
}

void Messages::close(MessageGroup& group, Failure const& why) {
  end(group, why);
  std::erase_if(groups_, [&group](GroupPtr const& each) { return each.get() == &group; });
}

void Messages::send(GroupPtr const& group, MessageRequest const& request, MessageDone done) {
  if (request.peer == group->membership().rank) return send_to_self(group, request, std::move(done));
  auto const bytes = request.sent.size();
  RunCall const call{group->run_to(request.peer, request.sequence),
                     request.sent,
                     {},
                     request.deadline,
                     links::Envelope{request.sequence, bytes, request.tag, 0}};
  MessageResult result;
  result.source = group->membership().rank;
  result.bytes = bytes;
  start(group, group->kind(MessageWay::send, request.peer, bytes), call, std::move(result), std::move(done));
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
  auto const watch = group->next_watch();
  group->table.post(watch, request.peer, request.tag);
  group->waiting.emplace(watch, MessageGroup::Waiting{request, std::move(done)});
  runs_.start_run(group->kind(MessageWay::receive, request.peer, 0), {watch, {}, {}, request.deadline},
                  [this, group, watch](RunResult ended) { watch_ended(*group, watch, std::move(ended)); });
}

// A watch ends well when its message has come: then nothing waits for it.
void Messages::watch_ended(MessageGroup& group, std::uint64_t watch, RunResult ended) {
  auto const found = group.waiting.find(watch);
  if (found == group.waiting.end() || ended.status.has_value()) return;
  auto const [request, done] = std::move(found->second);
  group.waiting.erase(found);
  group.table.forget(watch);
  auto why = to_failure(ended);
  bool const ends_the_group = why.code != EngineErrc::deadline_exceeded;
  why.text = wanted(group, request) + why.text;
  done(to_result(why, ends_the_group));
  if (ends_the_group) end(group, why);
}

bool Messages::arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                       links::Envelope const& envelope, std::uint64_t run) {
  auto* const group = find(open.token, epoch);
  if (group == nullptr) return false;
  auto const& membership = group->membership();
  auto const source = open.sender_rank;
  auto const refuse = [&](EngineErrc code, std::string why) {
    runs_.refuse_message(run, {code, std::move(why), {source}, {}});
  };
  if (source >= membership.members.size() || source == membership.rank || open.receiver_rank != membership.rank ||
      membership.members[source].worker != from.worker || membership.members[source].incarnation != from.incarnation) {
    refuse(EngineErrc::forbidden, from.worker + " is not rank " + std::to_string(source) + " of " + membership.name);
    return true;
  }
  if (!group->table.arrived({source, run, envelope})) {
    refuse(EngineErrc::protocol_error,
           name_of(*group, source) + " has sent message " + std::to_string(envelope.sequence) + " before");
    return true;
  }
  auto const self = std::find_if(groups_.begin(), groups_.end(), [&](auto const& each) { return each.get() == group; });
  match(GroupPtr(*self));  // a failure may drop it from the list
  return true;
}

void Messages::match(GroupPtr const& group) {
  while (auto const match = group->table.match()) {
    auto const waiting = group->waiting.find(match->id);
    auto [request, done] = std::move(waiting->second);
    group->waiting.erase(waiting);
    runs_.end_watch(match->id);
    take(group, match->arrival, request, std::move(done));
  }
}

void Messages::take(GroupPtr const& group, MessageTable::Arrival const& arrival, MessageRequest const& request,
                    MessageDone done) {
  if (arrival.source == group->membership().rank) return take_from_self(*group, arrival.run, request, done);
  auto const bytes = arrival.envelope.bytes;
  if (bytes > request.received.size()) {
    auto const why = too_large(*group, arrival.source, bytes, request);
    runs_.refuse_message(arrival.run, why);
    done(to_result(why, true));
    return end(*group, why);
  }
  MessageResult result;
  result.source = arrival.source;
  result.bytes = bytes;
  start(group, group->kind(MessageWay::receive, arrival.source, bytes),
        {arrival.run, {}, request.received.first(bytes), request.deadline}, std::move(result), std::move(done));
}

void Messages::failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  if (auto* const group = find(token, epoch)) end(*group, why);
}

void Messages::end(MessageGroup& group, Failure const& why) {
  if (group.failure) return;
  group.failure = why;
  group.failure->text = "the messages of this epoch have ended: " + why.detail();
  group.failure->reporter.clear();
  auto const waiting = std::exchange(group.waiting, {});
  for (auto const& [watch, receive] : waiting) {
    group.table.forget(watch);
    runs_.end_watch(watch);
    receive.done(to_result(why, true));
  }
  for (auto const run : std::vector(group.under_way)) runs_.fail_message(run, why);
  end_to_self(group, why);
  for (auto const run : group.table.unmatched()) {
    group.table.withdraw(run);
    runs_.refuse_message(run, why);
  }
}

}  // namespace chorus::engine
