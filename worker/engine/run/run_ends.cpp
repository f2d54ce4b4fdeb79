#include "worker/engine/run/run_ends.hpp"

#include <algorithm>
#include <utility>

namespace chorus::engine {

void reject(RunDone const& done, Failure const& why) {
  RunResult result;
  result.status = Error(why.code, why.detail());
  result.culprits = why.culprits;
  done(std::move(result));
}

void RunEnds::end(Run& run, std::optional<Failure> failure) {
  auto const& spec = run.spec();
  auto const id = spec.run;
  auto const epoch = spec.epoch;
  runs_.record_end(run).failure = failure;

  std::optional<links::FailureNotice> failure_notice;
  if (failure) failure_notice = to_failure_notice(*failure, spec.token);
  for (auto const& channel : run.sends())
    if (auto* const send_connection = channel->send_connection) {
      send_connection->remove(*channel);
      if (failure_notice) send_connection->send_failure_notice(links::FrameType::abort, id, epoch, *failure_notice);
    }
  for (auto const& channel : run.receives())
    if (auto* const receive_connection = channel->receive_connection) {
      receive_connection->remove(*channel);
      if (failure_notice) receive_connection->send_failure_notice(links::FrameType::abort, id, epoch, *failure_notice);
    }
  auto ended = runs_.take(id);
  if (failure) ended->of_kind.reset();
  if (failure_notice)
    for (auto& receive_connection : connections_.receives()) receive_connection->forget(id, epoch, *failure_notice);
  if (std::exchange(ended->is_stalled, false)) owner_.options().flights->goes_on(id);
  auto const now = owner_.surroundings().now();
  if (!unrested_.rests(*ended, now)) {
    ended->stop();
    unrested_.add(std::move(ended), std::move(failure), now);
    return owner_.surroundings().deadline_changed();
  }
  runs_.dead().emplace_back(std::move(ended))->end(failure, now, Run::Memory::goes);
}

void RunEnds::fail(std::uint64_t id, Failure failure) {
  if (auto* const run = runs_.find(id)) end(*run, std::move(failure));
}

void RunEnds::fail_all(Failure const& failure) {
  runs_.unfold_exchange();
  for (auto const id : runs_.numbers()) fail(id, failure);
}

void RunEnds::fail_for(Error const& why, std::uint64_t id, plan::Rank rank, std::string const& where) {
  auto* const run = runs_.find(id);
  if (run == nullptr) return;
  auto const code = code_of(why);
  if (code == EngineErrc::corrupt_frame) {
    auto const self = run->spec().program->rank;
    return end(*run, Failure{code,
                             "bytes were changed between " + run->name_of(self) + " and " + run->name_of(rank) +
                                 " while " + where + ": " + why.detail,
                             {std::min(self, rank), std::max(self, rank)},
                             {}});
  }
  auto const verb = code == EngineErrc::protocol_error ? "protocol error with " : "lost ";
  end(*run, Failure{code, verb + run->name_of(rank) + " while " + where + ": " + why.detail, {rank}, {}});
}

void RunEnds::fail_awaiting(Identity const& peer, Error const& why) {
  runs_.unfold_exchange();
  for (auto const id : runs_.numbers()) {
    auto* const run = runs_.find(id);
    auto const rank = run != nullptr ? run->rank_of(peer.worker, peer.incarnation) : std::nullopt;
    if (!rank) continue;
    if (auto const where = run->watch().awaits_open_of(*rank)) fail_for(why, id, *rank, *where);
  }
}

void RunEnds::end_before_start(std::uint64_t run, Failure const& failure) {
  if (owner_.is_shut_down() || runs_.find_ended(run) != nullptr) return;
  runs_.record_end(run, std::nullopt, failure).was_started = true;
  for (auto& receive_connection : connections_.receives()) receive_connection->forget(run, failure);
}

void RunEnds::end_unstarted(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice,
                            Failure failure) {
  runs_.record_end(run, failure_notice.token, std::move(failure));
  // Opens of peers may wait here for this rank's call, which will now fail at once.
  for (auto& receive_connection : connections_.receives()) receive_connection->forget(run, epoch, failure_notice);
}

void RunEnds::refuse(RunSpec const& spec, RunDone const& done, Error const& why) {
  auto const self = spec.program->rank;
  auto result = failed(Error(why.code, name_of(spec, self) + ": " + why.detail));
  result.culprits = {self};
  give_up(spec, self, result.status.error());
  done(std::move(result));
}

void RunEnds::give_up(RunSpec const& spec, plan::Rank rank, Error const& why) {
  if (owner_.is_shut_down() || runs_.find(spec.run) != nullptr || runs_.find_ended(spec.run) != nullptr) return;
  Failure const failure{EngineErrc::aborted, why.detail, {rank}, {}};
  runs_.record_end(spec.run, spec.token, failure).was_started = true;
  auto const failure_notice = to_failure_notice(failure, spec.token);
  for (auto const& peer : spec.members)
    if (peer.rank != rank && !connections_.is_fenced({peer.worker, peer.incarnation}))
      connections_.to(peer, spec.deadline)
          .send_failure_notice(links::FrameType::abort, spec.run, spec.epoch, failure_notice);
  for (auto& receive_connection : connections_.receives())
    receive_connection->forget(spec.run, spec.epoch, failure_notice);
}

}  // namespace chorus::engine
