#include "worker/engine/messages/messages.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "worker/engine/messages/message_failures.hpp"

namespace chorus::engine {
namespace {

std::string wanted(MessageGroup const& group, MessageRequest const& request) {
  auto const source = request.peer == any_source ? std::string("any rank") : name_of(group, request.peer);
  return "no message with tag " + std::to_string(request.tag) + " from " + source + ": ";
}

}  // namespace

Messages::GroupPtr Messages::find(std::uint64_t token, std::uint32_t epoch) const {
  for (auto const& group : groups_)
    if (group->membership().token == token && group->membership().epoch == epoch) return group;
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
      if (!cancel(*group, request.number)) result.status = Error(EngineErrc::aborted, "no receive waits");
      return done(std::move(result));
  }
}

std::optional<MessageGroup::Waiting> Messages::remove_waiting(MessageGroup& group, std::uint64_t receive) {
  auto const found = std::find_if(group.waiting.begin(), group.waiting.end(),
                                  [receive](auto const& each) { return each.request.number == receive; });
  if (found == group.waiting.end()) return std::nullopt;
  auto waiting = std::move(*found);
  group.waiting.erase(found);
  if (waiting.watch == 0)
    --unwatched_;
  else
    runs_.end_watch(waiting.watch);
  return waiting;
}

bool Messages::cancel(MessageGroup& group, std::uint64_t receive) {
  auto const cancelled = remove_waiting(group, receive);
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
  MessageResult result;
  result.source = membership.rank;
  result.bytes = bytes;
  if (is_sent) return done(std::move(result));
  auto const sequence = group->sequences[request.peer]++;
  RunCall const call{group->run_to(request.peer, sequence),
                     request.sent,
                     {},
                     request.deadline,
                     links::Envelope{sequence, bytes, request.tag, 0}};
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
  group->table.post(request.number, request.peer, request.tag);
  group->waiting.push_back({request, std::move(done)});
  ++unwatched_;
  runs_.watch_soon();
}

void Messages::watch_receives(bool all) {
  struct Unwatched {
    GroupPtr group;
    std::uint64_t receive = 0;
  };
  std::vector<Unwatched> unwatched;
  for (auto const& group : groups_)
    for (auto& each : group->waiting) {
      if (each.watch != 0 || !(std::exchange(each.was_seen, true) || all)) continue;
      each.watch = group->next_watch();
      --unwatched_;
      unwatched.push_back({group, each.request.number});
    }
  // A run that cannot begin ends its receive, and perhaps others.
  for (auto const& [group, receive] : unwatched) {
    auto const found = std::ranges::find(group->waiting, receive, [](auto const& each) { return each.request.number; });
    if (found == group->waiting.end()) continue;
    runs_.start_run(group->kind(MessageWay::receive, found->request.peer, 0),
                    {found->watch, {}, {}, found->request.deadline},
                    [this, group, receive](RunResult const& ended) { watch_ended(*group, receive, ended); });
  }
}

// A watch ends well when its message has come: then nothing waits for it.
void Messages::watch_ended(MessageGroup& group, std::uint64_t receive, RunResult const& ended) {
  if (ended.status.has_value()) return;
  auto const failed = remove_waiting(group, receive);
  if (!failed) return;
  group.table.forget(receive);
  auto why = to_failure(ended);
  bool const ends_the_group = why.code != EngineErrc::deadline_exceeded;
  why.text = wanted(group, failed->request) + why.text;
  failed->done(to_result(why, ends_the_group));
  if (ends_the_group) end(group, why);
}

bool Messages::arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                       links::Envelope const& envelope, std::uint64_t run) {
  auto const group = find(open.token, epoch);
  if (group == nullptr) return false;
  auto const source = open.sender_rank;
  if (auto const why = misidentified(*group, from, source, open.receiver_rank)) {
    runs_.refuse_message(run, *why);
  } else if (!group->table.arrived({source, run, envelope})) {
    runs_.refuse_message(run, sent_before(*group, source, envelope));
  } else {
    match(group);
  }
  return true;
}

void Messages::match(GroupPtr const& group) {
  while (auto const match = group->table.match()) {
    auto waiting = remove_waiting(*group, match->id);
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
  MessageResult result;
  result.source = arrival.source;
  result.bytes = bytes;
  start(group, group->kind(MessageWay::receive, arrival.source, bytes),
        {arrival.run, {}, request.received.first(bytes), request.deadline}, std::move(result), std::move(done));
}

void Messages::failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  if (auto const group = find(token, epoch)) end(*group, why);
}

void Messages::end(MessageGroup& group, Failure const& why) {
  if (group.failure) return;
  group.failure = why;
  group.failure->text = "the messages of this epoch have ended: " + why.detail();
  group.failure->reporter.clear();
  while (!group.waiting.empty()) {
    auto const receive = remove_waiting(group, group.waiting.front().request.number);
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

}  // namespace chorus::engine
