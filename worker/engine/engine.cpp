#include "worker/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/run/spec_check.hpp"
#include "worker/links/frames/errc.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine {
namespace {

// Local work of a run per turn, before the links get theirs; and the number of turns before the thread's other work.
constexpr std::uint64_t turn_bytes = 1u << 20;
constexpr int turns_max = 8;

}  // namespace

Engine::Engine(DataPlaneOptions options, Surroundings& surroundings, TrafficBook& traffic)
    : ConnectionOwner(std::move(options), surroundings, traffic),
      connections_(*this, options_.worker, surroundings, traffic),
      unrested_(surroundings, connections_, borrowed_arenas_),
      messages_(*this, {options_.eager_bytes, options_.early_runs, options_.early_bytes}) {}

Engine::~Engine() { CHORUS_ASSERT(shut_down_ && runs_.empty(), "an engine is shut down before it dies"); }

Run* Engine::find_run(std::uint64_t run) {
  unfold_exchange_of(run);
  for (auto const& each : runs_)
    if (each.number == run) return each.run.get();
  return nullptr;
}

void Engine::reject(RunDone const& done, Failure const& why) {
  RunResult result;
  result.status = Error(why.code, why.detail());
  result.culprits = why.culprits;
  done(std::move(result));
}

void Engine::start(RunSpec spec, RunDone done) {
  {
    Hold const hold(*this);
    try_start(std::move(spec), std::move(done), nullptr);
  }
  settle();
}

void Engine::start(std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done) {
  {
    Hold const hold(*this);
    auto kept = kind->take();
    if (kept != nullptr) kept->of_kind = kind;
    if (kept == nullptr || !kept->fits(call)) {
      auto spec = kind->of(call);
      try_start(std::move(spec), std::move(done), std::move(kind));
    } else if (may_start(call.run, kept->spec(), done) && !begin_exchange(kept, call, done)) {
      kept->begin(call, std::move(done), surroundings_.now());
      begin(std::move(kept));
    }
  }
  settle();
}

void Engine::try_start(RunSpec spec, RunDone done, std::shared_ptr<RunKind> kind) {
  if (auto const checked = check(spec); checked.has_error())
    return reject(done, {EngineErrc::aborted, checked.error().detail, {}, {}});
  if (!may_start(spec.run, spec, done)) return;
  auto device = begin_device(spec, done);
  if (!device) return;
  auto run = std::make_unique<Run>(std::move(spec), std::move(done), std::move(*device), options_, surroundings_);
  if (!run->has_device()) run->of_kind = std::move(kind);
  begin(std::move(run));
}

bool Engine::may_start(std::uint64_t id, RunSpec const& spec, RunDone const& done) {
  auto const refuse = [&](Failure const& why) {
    reject(done, why);
    return false;
  };
  auto const name = [id] { return "run " + std::to_string(id); };
  if (shut_down_) return refuse({EngineErrc::aborted, "the worker stops", {}, {}});
  if (id == 0 || find_run(id) != nullptr) return refuse({EngineErrc::aborted, name() + " is running already", {}, {}});
  if (connections_.fences_any())
    for (auto const& channel : spec.program->channels)
      if (auto const& peer = spec.members[channel.peer]; connections_.is_fenced({peer.worker, peer.incarnation}))
        return refuse({EngineErrc::epoch_fenced,
                       "rank " + std::to_string(peer.rank) + " (" + peer.worker + ") has a newer incarnation",
                       {peer.rank},
                       {}});
  if (auto const* const ended = find_ended(id); ended != nullptr && ended->has(spec.token)) {
    if (ended->was_started) return refuse({EngineErrc::aborted, name() + " has ended here before", {}, {}});
    return refuse(*ended->failure);
  }
  return true;
}

Run& Engine::list(std::unique_ptr<Run> run) {
  auto const id = run->spec().run;
  auto& listed = *runs_.emplace_back(id, std::move(run)).run;
  dirty_runs_.push(listed);
  return listed;
}

void Engine::begin(std::unique_ptr<Run> begun) {
  auto& run = list(std::move(begun));
  if (run.has_device()) device_runs_.push_back(&run);
  for (auto const& channel : run.sends()) {
    if (run.is_short()) channel->let_open();
    connections_.for_channel(*channel, run.spec().members[channel->peer()], run.spec().deadline).add(*channel);
  }
  for (std::size_t i = 0; i < connections_.receives().size() && !run.ended(); ++i)
    connections_.receives()[i]->start(run);
  surroundings_.deadline_changed();
}

void Engine::abort(std::uint64_t run, Error why) {
  bool const is_ours = why.code.category() == engine_category();
  auto const code = is_ours ? static_cast<EngineErrc>(why.code.value()) : EngineErrc::aborted;
  Failure failure{code, std::move(why.detail), {}, {}};
  if (find_run(run) != nullptr)
    fail_run(run, std::move(failure));
  else
    end_before_start(run, failure);
  settle();
}

void Engine::end_before_start(std::uint64_t run, Failure const& failure) {
  if (shut_down_ || find_ended(run) != nullptr) return;
  Hold const hold(*this);
  auto& ended = ended_.at(run);
  ended = {};
  ended.failure = failure;
  ended.was_started = true;
  for (auto& receive_connection : connections_.receives()) receive_connection->forget(run, failure);
}

void Engine::end_unstarted(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice,
                           Failure failure) {
  auto& ended = ended_.at(run);
  ended = {};
  ended.token = failure_notice.token;
  ended.failure = std::move(failure);
  // Opens of peers may wait here for this rank's call, which will now fail at once.
  for (auto& receive_connection : connections_.receives()) receive_connection->forget(run, epoch, failure_notice);
}

void Engine::give_up(RunSpec const& spec, plan::Rank rank, Error const& why) {
  if (shut_down_ || find_run(spec.run) != nullptr || find_ended(spec.run) != nullptr) return;
  {
    Hold const hold(*this);
    Failure const failure{EngineErrc::aborted, why.detail, {rank}, {}};
    auto& ended = ended_.at(spec.run);
    ended = {};
    ended.token = spec.token;
    ended.failure = failure;
    ended.was_started = true;
    auto const failure_notice = to_failure_notice(failure, spec.token);
    for (auto const& peer : spec.members)
      if (peer.rank != rank && !connections_.is_fenced({peer.worker, peer.incarnation}))
        connections_.to(peer, spec.deadline)
            .send_failure_notice(links::FrameType::abort, spec.run, spec.epoch, failure_notice);
    for (auto& receive_connection : connections_.receives())
      receive_connection->forget(spec.run, spec.epoch, failure_notice);
  }
  settle();
}

void Engine::retire(Retired epoch) {
  {
    Hold const hold(*this);
    auto const& retired = retired_.add(std::move(epoch));
    for (auto& receive_connection : connections_.receives()) receive_connection->retire(retired);
  }
  settle();
}

void Engine::adopt(std::shared_ptr<links::Link> link, Identity peer, bool lends, std::shared_ptr<links::Link> back) {
  {
    Hold const hold(*this);
    auto& receive_connection = connections_.adopt(std::move(link), std::move(peer), lends, std::move(back));
    if (shut_down_)
      receive_connection.refuse_link(EngineErrc::aborted, options_.worker + " stops");
    else if (connections_.is_fenced(receive_connection.peer()))
      receive_connection.refuse_link(EngineErrc::epoch_fenced, "a newer incarnation is known");
  }
  settle();
}

void Engine::dialed(std::uint64_t send_connection, Result<std::shared_ptr<links::Link>> link, bool lends,
                    std::shared_ptr<links::Link> back) {
  if (!connections_.awaits(send_connection)) {
    if (link.has_value()) (*link)->close();
    return;
  }
  {
    Hold const hold(*this);
    connections_.dialed(send_connection, std::move(link), lends, std::move(back));
  }
  settle();
}

void Engine::fence(std::string const& worker, std::uint64_t incarnation) {
  {
    Hold const hold(*this);
    connections_.fence(worker, incarnation);
  }
  settle();
}

Connection& Engine::connection_to(Run& run, plan::Rank rank) {
  for (auto const& channel : run.receives())
    if (channel->peer() == rank && channel->receive_connection != nullptr) return *channel->receive_connection;
  for (auto const& channel : run.sends())
    if (channel->peer() == rank && channel->send_connection != nullptr) return *channel->send_connection;
  auto const& peer = run.spec().members[rank];
  auto& send_connection = connections_.to(peer, run.spec().deadline);
  send_connection.depends(run.spec().run);
  return send_connection;
}

void Engine::touch(std::uint64_t id) {
  if (auto* const run = find_run(id)) dirty_runs_.push(*run);
}

void Engine::heard(std::uint64_t id, plan::Rank rank) {
  if (auto* const run = find_run(id)) run->watch().heard(rank);
}

void Engine::fail_for(Error const& why, std::uint64_t id, plan::Rank rank, std::string const& where) {
  auto* const run = find_run(id);
  if (run == nullptr) return;
  auto const code = code_of(why);
  if (code == EngineErrc::corrupt_frame) {
    auto const self = run->spec().program->rank;
    return fail_run(id, {code,
                         "bytes were changed between " + run->name_of(self) + " and " + run->name_of(rank) + " while " +
                             where + ": " + why.detail,
                         {std::min(self, rank), std::max(self, rank)},
                         {}});
  }
  auto const verb = code == EngineErrc::protocol_error ? "protocol error with " : "lost ";
  fail_run(id, {code, verb + run->name_of(rank) + " while " + where + ": " + why.detail, {rank}, {}});
}

void Engine::fail_awaiting(Identity const& peer, Error const& why) {
  {
    Hold const hold(*this);
    messages_.watch_receives(true);
  }
  unfold_any_exchange();
  std::vector<std::uint64_t> ids;
  for (auto const& [id, run] : runs_) ids.push_back(id);
  for (auto const id : ids) {
    auto* const run = find_run(id);
    auto const rank = run != nullptr ? run->rank_of(peer.worker, peer.incarnation) : std::nullopt;
    if (!rank) continue;
    if (auto const where = run->watch().awaits_open_of(*rank)) fail_for(why, id, *rank, *where);
  }
}

void Engine::fail_run(std::uint64_t id, Failure failure) {
  if (auto* const run = find_run(id)) end_run(*run, std::move(failure));
}

EndedRun& Engine::remember(Run const& run) {
  auto const& spec = run.spec();
  auto& ended = ended_.at(spec.run);
  ended.token = spec.token;
  ended.fingerprint = spec.fingerprint;
  ended.description = run.description();
  ended.was_started = true;
  ended.was_message = spec.envelope.has_value();
  return ended;
}

void Engine::end_run(Run& run, std::optional<Failure> failure) {
  auto const& spec = run.spec();
  auto const id = spec.run;
  auto const epoch = spec.epoch;
  remember(run).failure = failure;

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
  auto const entry = std::find_if(runs_.begin(), runs_.end(), [id](auto const& each) { return each.number == id; });
  auto dead = std::move(entry->run);
  runs_.erase(entry);
  if (failure) dead->of_kind.reset();
  if (failure_notice)
    for (auto& receive_connection : connections_.receives()) receive_connection->forget(id, epoch, *failure_notice);
  if (std::exchange(dead->is_stalled, false)) options_.flights->goes_on(id);
  if (dead->has_device()) std::erase(device_runs_, dead.get());
  auto const now = surroundings_.now();
  if (!unrested_.rests(*dead, now)) {
    dead->stop();
    unrested_.add(std::move(dead), std::move(failure), now);
    return surroundings_.deadline_changed();
  }
  dead_runs_.emplace_back(std::move(dead))->end(failure, now, Run::Memory::goes);
}

void Engine::fail_all(Failure const& failure) {
  unfold_any_exchange();
  std::vector<std::uint64_t> ids;
  for (auto const& [id, run] : runs_) ids.push_back(id);
  for (auto const id : ids) fail_run(id, failure);
}

bool Engine::memory_is_unsound() const { return options_.arena != nullptr && options_.arena->mapping().is_broken(); }

// Results computed from memory that lost its pages are neither returned nor sent.
std::optional<Failure> Engine::unsound_memory() const {
  if (!memory_is_unsound()) return std::nullopt;
  return Failure{EngineErrc::aborted, "the shared memory of " + options_.worker + " was truncated", {}, {}};
}

void Engine::settle() {
  if (held_) return;
  held_ = true;
  if (exchange_.has_arrived) end_exchange();
  for (int turn = 0; !dirty_runs_.empty() || !dirty_connections_.empty(); ++turn) {
    bool work_left = false;
    for (auto left = dirty_runs_.size(); left != 0; --left) {
      auto& run = dirty_runs_.pop();
      if (run.has_device()) decide(run.spec().run);
      if (run.ended()) continue;
      if (run.work(turn_bytes)) {
        work_left = true;
        dirty_runs_.push(run);
      } else if (auto failure = run.device_failure()) {
        end_run(run, std::move(failure));
      } else if (run.finished() && !is_watch_of_nobody(run.spec())) {
        end_run(run, unsound_memory());
      }
    }
    if (auto const why = unsound_memory()) fail_all(*why);
    for (auto left = dirty_connections_.size(); left != 0; --left) dirty_connections_.pop().flush();
    if (work_left && turn >= turns_max) {
      surroundings_.settle_soon();
      break;
    }
  }
  held_ = false;
  if (dirty_runs_.empty() && dirty_connections_.empty()) reap();
  if (awaits_devices()) surroundings_.poll_devices_soon();
}

void Engine::reap() {
  for (auto& run : dead_runs_)
    if (auto const kind = std::exchange(run->of_kind, nullptr)) kind->keep(std::move(run));
  dead_runs_.clear();
  if (!std::exchange(has_closed_, false)) return;
  connections_.reap();
}

void Engine::stop() {
  {
    Hold const hold(*this);
    messages_.watch_receives(true);
    shut_down_ = true;
    fail_all({EngineErrc::aborted, options_.worker + " stops", {}, {}});
  }
  settle();
}

void Engine::shut_down() {
  stop();
  std::optional<Hold> hold(std::in_place, *this);
  unrested_.end_all(dead_runs_);
  connections_.fail_all(Error(links::LinkErrc::closed, "the worker stops"));
  hold.reset();
  settle();
}

}  // namespace chorus::engine
