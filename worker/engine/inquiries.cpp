// The engine's timers: deadlines, runs that stand still, and the asks and tells between ranks.
#include <algorithm>
#include <utility>

#include "worker/engine/engine.hpp"

namespace chorus::engine {

Engine::TimePoint Engine::next_deadline() const {
  auto next = TimePoint::max();
  for (auto const& [id, run] : runs_) next = std::min(next, run->next_deadline());
  if (exchange_.run != nullptr) next = std::min(next, exchange_.run->next_deadline());
  return std::min(next, unrested_.next_deadline());
}

void Engine::check_deadlines() {
  look_for_standstill();
  auto const now = surroundings_.now();
  if (exchange_.run != nullptr && exchange_.run->next_deadline() <= now) unfold_any_exchange();
  std::vector<std::uint64_t> ids;
  for (auto const& [id, run] : runs_)
    if (run->next_deadline() <= now) ids.push_back(id);
  {
    Hold const hold(*this);
    for (auto const id : ids) {
      if (auto* const run = find_run(id)) {
        run->watch().look_for_own_silence(now);
        if (auto failure = run->expired(now)) end_run(*run, std::move(failure));
      }
      if (auto* const run = find_run(id); run != nullptr && run->watch().wants_to_ask(now)) inquire(*run, now);
    }
    unrested_.poll(dead_runs_);
  }
  settle();
}

void Engine::look_for_stall(Run& run, TimePoint now) {
  if (is_watch(run.spec())) return;
  auto const still = run.look_for_progress(now);
  if (options_.flights == nullptr || run.is_stalled == (still >= options_.flights->stall_after())) return;
  run.is_stalled = !run.is_stalled;
  if (run.is_stalled)
    options_.flights->stalled(run.progress(now));
  else
    options_.flights->goes_on(run.spec().run);
}

std::vector<RunProgress> Engine::progress(std::optional<std::uint64_t> wanted) {
  unfold_any_exchange();
  std::vector<RunProgress> all;
  auto const now = surroundings_.now();
  for (auto const& [id, run] : runs_) {
    if (wanted && *wanted != id) continue;
    static_cast<void>(run->look_for_progress(now));
    run->watch().look_for_own_silence(now);
    all.push_back(run->progress(now));
  }
  return all;
}

void Engine::inquire(Run& run, TimePoint now) {
  look_for_stall(run, now);
  for (auto const& channel : run.sends()) {
    channel->let_open();
    if (channel->send_connection != nullptr && channel->has_frame()) channel->send_connection->schedule(*channel);
  }
  if (auto failure = run.watch().lost_in_silence(now)) return end_run(run, std::move(failure));
  auto const has_link_from = [this](Peer const& peer) {
    return std::any_of(connections_.receives().begin(), connections_.receives().end(),
                       [&](auto const& receive_connection) {
                         bool const brings = !receive_connection->is_closed() &&
                                             (!receive_connection->is_beside() || receive_connection->moved() != 0);
                         return brings && receive_connection->peer() == Identity{peer.worker, peer.incarnation};
                       });
  };
  if (auto failure = run.watch().lost_on_the_way(has_link_from)) return end_run(run, std::move(failure));
  auto const& spec = run.spec();
  for (auto const rank : run.watch().begin_inquiry(now)) {
    auto& connection = connection_to(run, rank);
    run.watch().failure_detector().asked(rank, connection.moved(), now);
    connection.send_ask(spec.run, spec.epoch, {spec.token});
  }
}

void Engine::asked(Connection& by, std::uint64_t id, std::uint32_t epoch, links::Ask const& ask) {
  links::Tell tell;
  tell.head.token = ask.token;
  if (auto* const run = find_run(id)) {
    if (run->spec().token != ask.token) return;
    auto const now = surroundings_.now();
    run->watch().look_for_own_silence(now);
    if (auto const suspect = run->watch().suspect(now)) {
      tell.head.suspicion = suspect->kind;
      tell.head.suspect = suspect->rank;
      tell.head.since_us = static_cast<std::uint64_t>(suspect->lasting.count());
      tell.text = suspect->text;
    }
  } else if (auto const* const ended = find_ended(id)) {
    if (!ended->has(ask.token)) return;
    // The asking rank was not told of the failure: the link for the notice is gone.
    if (ended->failure)
      return by.send_failure_notice(links::FrameType::abort, id, epoch, to_failure_notice(*ended->failure, ask.token));
    tell.head.doing = links::Doing::ended;
  } else {
    tell.head.doing = links::Doing::not_called;
  }
  by.send_tell(id, epoch, tell);
}

void Engine::told(Identity const& by, std::uint64_t id, links::Tell tell) {
  auto* const run = find_run(id);
  if (run == nullptr || !run->watch().has_asked() || run->spec().token != tell.head.token) return;
  auto const rank = run->rank_of(by.worker, by.incarnation);
  if (!rank) return;
  auto const now = surroundings_.now();
  if (auto const owing = run->watch().failure_detector().owing(*rank, now); owing.count() > 0)
    traffic_.of(by.worker).answered(owing);
  run->watch().failure_detector().told(*rank, std::move(tell), now);
}

void Engine::lost_touch(Identity const& peer, std::uint64_t id, Error const& why) {
  auto* const run = find_run(id);
  if (run == nullptr) return;
  auto const rank = run->rank_of(peer.worker, peer.incarnation);
  auto const where = rank ? run->watch().waits_where(*rank) : std::nullopt;
  if (where) fail_for(why, id, *rank, *where);
}

}  // namespace chorus::engine
