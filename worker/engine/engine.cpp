#include "worker/engine/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/run/spec_check.hpp"
#include "worker/links/frames/errc.hpp"
#include "worker/memory/pages/errc.hpp"

namespace chorus::engine {
namespace {

// Local work of a run per turn, before the links get theirs; and the number of turns before the thread's other work.
constexpr std::uint64_t turn_bytes = 1u << 20;
constexpr int turns_max = 8;

}  // namespace

Engine::Engine(DataPlaneOptions options, Surroundings& surroundings, TrafficBook& traffic)
    : ConnectionOwner(std::move(options), surroundings, traffic),
      memory_(options_),
      connections_(*this, options_.worker, surroundings, traffic),
      unrested_(surroundings, connections_, borrowed_arenas_),
      ends_(*this, runs_, connections_, unrested_),
      exchanges_(runs_, connections_, surroundings, memory_),
      device_runs_(*this, runs_, ends_, unrested_, borrowed_arenas_),
      inquiries_(*this, runs_, connections_, ends_),
      transfers_(*this, runs_, connections_, ends_, memory_,
                 [this](std::shared_ptr<RunKind> kind, RunCall const& call, RunDone done) {
                   start(std::move(kind), call, std::move(done));
                 }) {}

Engine::~Engine() { CHORUS_ASSERT(shut_down_ && runs_.all().empty(), "an engine is shut down before it dies"); }

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
    } else if (may_start(call.run, kept->spec(), done) && !exchanges_.begin(kept, call, done)) {
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
  auto device = device_runs_.begin(spec, done);
  if (!device) return;
  std::unique_ptr<Run> run;
  try {
    run = std::make_unique<Run>(spec, done, std::move(*device), options_, surroundings_);
  } catch (std::bad_alloc const&) {  // the caller's counts say how much a rank passes on
    return ends_.refuse(spec, done, Error(memory::MemoryErrc::unavailable, "no memory for " + spec.description));
  }
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

void Engine::begin(std::unique_ptr<Run> begun) {
  auto& run = runs_.add(std::move(begun));
  for (auto const& channel : run.sends()) {
    if (run.is_short()) channel->let_open();
    connections_.for_channel(*channel, run.spec().members[channel->peer()], run.spec().deadline).add(*channel);
  }
  for (std::size_t i = 0; i < connections_.receives().size() && !run.ended(); ++i)
    connections_.receives()[i]->start(run);
  if (run.next_deadline() < told_deadline_) surroundings_.deadline_changed();
}

void Engine::abort(std::uint64_t run, Error why) {
  bool const is_ours = why.code.category() == engine_category();
  auto const code = is_ours ? static_cast<EngineErrc>(why.code.value()) : EngineErrc::aborted;
  Failure failure{code, std::move(why.detail), {}, {}};
  {
    Hold const hold(*this);
    if (find_run(run) != nullptr)
      ends_.fail(run, std::move(failure));
    else
      ends_.end_before_start(run, failure);
  }
  settle();
}

void Engine::give_up(RunSpec const& spec, plan::Rank rank, Error const& why) {
  {
    Hold const hold(*this);
    ends_.give_up(spec, rank, why);
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

void Engine::touch(std::uint64_t id) {
  if (auto* const run = find_run(id)) runs_.dirty().push(*run);
}

void Engine::heard(std::uint64_t id, plan::Rank rank) {
  if (auto* const run = find_run(id)) run->watch().heard(rank);
}

void Engine::fail_awaiting(Identity const& peer, Error const& why) {
  {
    Hold const hold(*this);
    transfers_.messages().watch_receives(true);
  }
  ends_.fail_awaiting(peer, why);
}

void Engine::look_for_standstill() {
  Hold const hold(*this);
  device_runs_.look_for_standstill();
}

void Engine::decide(std::uint64_t run) {
  for (auto& receive_connection : connections_.receives()) receive_connection->decide(run);
}

void Engine::begin_message(std::shared_ptr<MessageGroup> const& group, MessageRequest const& request,
                           MessageDone done) {
  {
    Hold const hold(*this);
    transfers_.messages().begin(group, request, std::move(done));
  }
  settle();
}

void Engine::close_messages(MessageGroup& group, Failure const& why) {
  {
    Hold const hold(*this);
    transfers_.messages().close(group, why);
  }
  settle();
}

void Engine::watch_receives(bool all) {
  {
    Hold const hold(*this);
    transfers_.messages().watch_receives(all);
  }
  settle();
}

// Called by a connection that is reading, as the next two: settles later.
void Engine::message_arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                             links::Envelope const& envelope, std::uint64_t run) {
  Hold const hold(*this);
  transfers_.messages().arrived(from, open, epoch, envelope, run);
}

bool Engine::message_frame_arrived(Identity const& from, links::MessageFrame const& message) {
  Hold const hold(*this);
  return transfers_.messages().arrived(from, message);
}

void Engine::message_failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  Hold const hold(*this);
  transfers_.messages().failed(token, epoch, why);
}

Engine::TimePoint Engine::next_deadline() {
  auto next = unrested_.next_deadline();
  for (auto const& [id, run] : runs_.all()) next = std::min(next, run->next_deadline());
  if (runs_.exchange().run != nullptr) next = std::min(next, runs_.exchange().run->next_deadline());
  return told_deadline_ = next;
}

void Engine::check_deadlines() {
  {
    Hold const hold(*this);
    device_runs_.look_for_standstill();
    inquiries_.check(surroundings_.now());
    unrested_.poll(runs_.dead());
  }
  settle();
}

bool Engine::poll_devices() {
  bool moved = false;
  {
    Hold const hold(*this);
    moved = device_runs_.poll();
  }
  if (moved || !dirty_connections_.empty())
    settle();
  else if (awaits_devices())
    surroundings_.poll_devices_soon();
  return moved;
}

bool Engine::work_on_runs() {
  auto& dirty = runs_.dirty();
  bool work_left = false;
  for (auto left = dirty.size(); left != 0; --left) {
    auto& run = dirty.pop();
    if (run.has_device()) decide(run.spec().run);
    if (run.ended()) continue;
    if (run.work(turn_bytes)) {
      work_left = true;
      dirty.push(run);
    } else if (auto failure = run.device_failure()) {
      ends_.end(run, std::move(failure));
    } else if (run.finished() && !is_watch_of_nobody(run.spec())) {
      ends_.end(run, memory_.failure());
    }
  }
  return work_left;
}

void Engine::settle() {
  if (held_) return;
  held_ = true;
  exchanges_.end_arrived();
  for (int turn = 0; !runs_.dirty().empty() || !dirty_connections_.empty(); ++turn) {
    bool const work_left = work_on_runs();
    if (auto const why = memory_.failure()) ends_.fail_all(*why);
    for (auto left = dirty_connections_.size(); left != 0; --left) dirty_connections_.pop().flush();
    if (work_left && turn >= turns_max) {
      surroundings_.settle_soon();
      break;
    }
  }
  held_ = false;
  if (runs_.dirty().empty() && dirty_connections_.empty()) reap();
  if (awaits_devices()) surroundings_.poll_devices_soon();
}

void Engine::reap() {
  for (auto& run : runs_.dead())
    if (auto const kind = std::exchange(run->of_kind, nullptr)) kind->keep(std::move(run));
  runs_.dead().clear();
  if (!std::exchange(has_closed_, false)) return;
  connections_.reap();
}

void Engine::stop() {
  {
    Hold const hold(*this);
    transfers_.messages().watch_receives(true);
    shut_down_ = true;
    ends_.fail_all({EngineErrc::aborted, options_.worker + " stops", {}, {}});
  }
  settle();
}

void Engine::shut_down() {
  stop();
  std::optional<Hold> hold(std::in_place, *this);
  unrested_.end_all(runs_.dead());
  connections_.fail_all(Error(links::LinkErrc::closed, "the worker stops"));
  hold.reset();
  settle();
}

}  // namespace chorus::engine
