#include "worker/engine/inquiries.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/messages/message_runs.hpp"

namespace chorus::engine {

void Inquiries::check(TimePoint now) {
  if (auto const& exchange = runs_.exchange(); exchange.run != nullptr && exchange.run->next_deadline() <= now)
    runs_.unfold_exchange();
  std::vector<std::uint64_t> due;
  for (auto const& [id, run] : runs_.all())
    if (run->next_deadline() <= now) due.push_back(id);
  for (auto const id : due) {
    if (auto* const run = runs_.find(id)) {
      run->watch().look_for_own_silence(now);
      if (auto failure = run->expired(now)) ends_.end(*run, std::move(failure));
    }
    if (auto* const run = runs_.find(id); run != nullptr && run->watch().wants_to_ask(now)) inquire(*run, now);
  }
}

void Inquiries::look_for_stall(Run& run, TimePoint now) {
  if (is_watch(run.spec())) return;
  auto const still = run.look_for_progress(now);
  if (owner_.options().flights == nullptr || run.is_stalled == (still >= owner_.options().flights->stall_after()))
    return;
  run.is_stalled = !run.is_stalled;
  if (run.is_stalled)
    owner_.options().flights->stalled(run.progress(now));
  else
    owner_.options().flights->goes_on(run.spec().run);
}

std::vector<RunProgress> Inquiries::progress(std::optional<std::uint64_t> wanted) {
  runs_.unfold_exchange();
  std::vector<RunProgress> all;
  auto const now = owner_.surroundings().now();
  for (auto const& [id, run] : runs_.all()) {
    if (wanted && *wanted != id) continue;
    static_cast<void>(run->look_for_progress(now));
    run->watch().look_for_own_silence(now);
    all.push_back(run->progress(now));
  }
  return all;
}

Connection& Inquiries::connection_to(Run& run, plan::Rank rank) {
  for (auto const& channel : run.receives())
    if (channel->peer() == rank && channel->receive_connection != nullptr) return *channel->receive_connection;
  for (auto const& channel : run.sends())
    if (channel->peer() == rank && channel->send_connection != nullptr) return *channel->send_connection;
  auto const& peer = run.spec().members[rank];
  auto& send_connection = connections_.to(peer, run.spec().deadline);
  send_connection.depends(run.spec().run);
  return send_connection;
}

void Inquiries::inquire(Run& run, TimePoint now) {
  look_for_stall(run, now);
  for (auto const& channel : run.sends()) {
    channel->let_open();
    if (channel->send_connection != nullptr && channel->has_frame()) channel->send_connection->schedule(*channel);
  }
  if (auto failure = run.watch().lost_in_silence(now)) return ends_.end(run, std::move(failure));
  auto const has_link_from = [this](Peer const& peer) {
    return std::any_of(connections_.receives().begin(), connections_.receives().end(),
                       [&](auto const& receive_connection) {
                         bool const brings = !receive_connection->is_closed() &&
                                             (!receive_connection->is_beside() || receive_connection->moved() != 0);
                         return brings && receive_connection->peer() == Identity{peer.worker, peer.incarnation};
                       });
  };
  if (auto failure = run.watch().lost_on_the_way(has_link_from)) return ends_.end(run, std::move(failure));
  auto const& spec = run.spec();
  for (auto const rank : run.watch().begin_inquiry(now)) {
    auto& connection = connection_to(run, rank);
    run.watch().failure_detector().asked(rank, connection.moved(), now);
    connection.send_ask(spec.run, spec.epoch, {spec.token});
  }
}

void Inquiries::asked(Connection& by, std::uint64_t id, std::uint32_t epoch, links::Ask const& ask) {
  links::Tell tell;
  tell.head.token = ask.token;
  if (auto* const run = runs_.find(id)) {
    if (run->spec().token != ask.token) return;
    auto const now = owner_.surroundings().now();
    run->watch().look_for_own_silence(now);
    if (auto const suspect = run->watch().suspect(now)) {
      tell.head.suspicion = suspect->kind;
      tell.head.suspect = suspect->rank;
      tell.head.since_us = static_cast<std::uint64_t>(suspect->lasting.count());
      tell.text = suspect->text;
    }
  } else if (auto const* const ended = runs_.find_ended(id)) {
    if (!ended->has(ask.token)) return;
    // The asking rank was not told of the failure: the link for the notice is gone.
    if (ended->failure)
      return by.send_failure_notice(links::FrameType::abort, id, epoch, to_failure_notice(*ended->failure, ask.token));
    tell.head.doing = links::Doing::ended;
  } else if (auto const* const retired = owner_.find_retired(ask.token, epoch)) {
    return by.send_failure_notice(links::FrameType::abort, id, epoch,
                                  to_failure_notice(retired->told_to(by.peer().worker), ask.token));
  } else {
    tell.head.doing = links::Doing::not_called;
  }
  by.send_tell(id, epoch, tell);
}

void Inquiries::told(Identity const& by, std::uint64_t id, links::Tell tell) {
  auto* const run = runs_.find(id);
  if (run == nullptr || !run->watch().has_asked() || run->spec().token != tell.head.token) return;
  auto const rank = run->rank_of(by.worker, by.incarnation);
  if (!rank) return;
  auto const now = owner_.surroundings().now();
  if (auto const owing = run->watch().failure_detector().owing(*rank, now); owing.count() > 0)
    owner_.traffic().of(by.worker).answered(owing);
  run->watch().failure_detector().told(*rank, std::move(tell), now);
}

void Inquiries::lost_touch(Identity const& peer, std::uint64_t id, Error const& why) {
  auto* const run = runs_.find(id);
  if (run == nullptr) return;
  auto const rank = run->rank_of(peer.worker, peer.incarnation);
  auto const where = rank ? run->watch().waits_where(*rank) : std::nullopt;
  if (where) ends_.fail_for(why, id, *rank, *where);
}

}  // namespace chorus::engine
