#include "worker/engine/run.hpp"

#include <algorithm>
#include <utility>

#include "collectives/plan/digest.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/inlet.hpp"
#include "worker/engine/outlet.hpp"
#include "worker/engine/run_identity.hpp"

namespace chorus::engine {
namespace {

constexpr std::uint64_t segment_bytes_min = 64;
constexpr std::chrono::seconds moment{1};  // a thread that was not let run for a while has gone on

std::uint64_t whole_elements(std::uint64_t bytes, Dtype dtype) {
  auto const size = element_bytes(dtype);
  return std::clamp<std::uint64_t>(bytes, segment_bytes_min, links::data_bytes_max) / size * size;
}

Error cannot(RunSpec const& spec, std::string why) {
  return {EngineErrc::aborted, "run " + std::to_string(spec.run) + " cannot start: " + std::move(why)};
}

std::uint64_t sized(std::uint64_t plan_digest, std::vector<std::uint32_t> const& instructions,
                    Scoreboard const& board) {
  std::vector<std::uint64_t> message_bytes;
  message_bytes.reserve(instructions.size());
  for (auto const i : instructions) message_bytes.push_back(board.total(i));
  return channel_digest(plan_digest, message_bytes);
}

RunState make_state(RunSpec const& spec, std::uint64_t eager_bytes, Timeline& timeline) {
  Workspace workspace(*spec.program, spec.dtype, spec.reduce, spec.sizes, spec.input, spec.output);
  auto totals = workspace.total_bytes();
  return {.run = spec.run,
          .epoch = spec.epoch,
          .segment_bytes = whole_elements(spec.segment_bytes, spec.dtype),
          .window = std::max<std::uint32_t>(spec.window, 1),
          .eager_bytes = eager_bytes,
          .program = *spec.program,
          .workspace = std::move(workspace),
          .board = Scoreboard(*spec.program, std::move(totals), &timeline)};
}

}  // namespace

Status check(RunSpec const& spec) {
  if (!spec.program) return cannot(spec, "it has no program");
  if (spec.gpu != nullptr) return cannot(spec, "the engine does not run over memory of a GPU yet");
  auto const& program = *spec.program;
  if (spec.members.size() != program.spec.ranks || program.rank >= spec.members.size())
    return cannot(spec, std::to_string(spec.members.size()) + " members for a program of " +
                            std::to_string(program.spec.ranks) + " ranks");
  for (std::size_t r = 0; r < spec.members.size(); ++r)
    if (spec.members[r].rank != r) return cannot(spec, "its members are not in rank order");
  if (auto const status = plan::check(program, spec.sizes); status.has_error())
    return cannot(spec, status.error().detail);
  auto const layouts = plan::layouts(program, spec.sizes);
  auto const input_bytes = plan::input_elements(program, layouts) * element_bytes(spec.dtype);
  auto const output_bytes = plan::output_elements(program, layouts) * element_bytes(spec.dtype);
  if (spec.input.size() != input_bytes || spec.output.size() != output_bytes)
    return cannot(spec, "buffers of " + std::to_string(spec.input.size()) + " and " +
                            std::to_string(spec.output.size()) + " bytes for " + std::to_string(input_bytes) + " and " +
                            std::to_string(output_bytes));
  bool const one_buffer = program.spec.in_place && !program.input.empty() && !program.output.empty();
  if (one_buffer && spec.input.data() != spec.output.data()) return cannot(spec, "it is not in place");
  if (reduces(program.spec.op) && devices::find_combine(spec.reduce, spec.dtype) == nullptr)
    return cannot(spec,
                  std::string(name(spec.reduce)) + " of " + std::string(name(spec.dtype)) + " is not in this build");
  return ok();
}

Run::Run(RunSpec spec, RunDone done, DataPlaneOptions const& options, Clock& clock)
    : spec_(std::move(spec)),
      done_(std::move(done)),
      started_(clock.now()),
      timeline_(*spec_.program, clock, started_),
      state_(make_state(spec_, options.eager_bytes, timeline_)),
      places_(spec_.program->instructions.size()),
      heard_(spec_.members.size()),
      inquiry_(options.inquiry),
      silence_(options.silence),
      until_inquiry_(std::max(inquiry_ / 16, std::chrono::milliseconds(1))),
      next_inquiry_(started_ + until_inquiry_),
      still_since_(started_) {
  prepare_channels();
}

void Run::prepare_channels() {
  auto const& program = *spec_.program;
  // By peer rank, then by message.
  std::vector<std::uint32_t> send_of(spec_.members.size()), receive_of(spec_.members.size());
  std::vector<std::vector<std::uint32_t>> sends(program.channels.size()), receives(program.channels.size());
  for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
    send_of[program.channels[c].peer] = receive_of[program.channels[c].peer] = c;
    sends[c].resize(program.channels[c].sends);
    receives[c].resize(program.channels[c].receives);
  }
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    auto const& instruction = program.instructions[i];
    if (instruction.op == plan::Opcode::send) sends[send_of[instruction.peer]].at(instruction.message) = i;
    if (instruction.receives()) receives[receive_of[instruction.peer]].at(instruction.message) = i;
  }
  for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
    auto const& channel = program.channels[c];
    links::Open open;
    open.token = spec_.token;
    open.fingerprint = spec_.fingerprint;
    open.channel_digest = sized(channel.send_digest, sends[c], state_.board);
    open.receiver_incarnation = spec_.members[channel.peer].incarnation;
    open.eager_bytes = state_.eager_bytes;
    open.sender_rank = program.rank;
    open.receiver_rank = channel.peer;
    for (std::uint32_t m = 0; m < channel.sends; ++m)
      places_[sends[c][m]] = {static_cast<std::uint32_t>(sends_.size()), m};
    for (std::uint32_t m = 0; m < channel.receives; ++m)
      places_[receives[c][m]] = {static_cast<std::uint32_t>(receives_.size()), m};
    if (channel.sends != 0) sends_.emplace_back(state_, channel.peer, std::move(sends[c]), open, spec_.description);
    if (channel.receives != 0) {
      auto const digest = sized(channel.receive_digest, receives[c], state_.board);
      receives_.emplace_back(state_, channel.peer, std::move(receives[c]), digest);
    }
  }
}

bool Run::work(std::uint64_t budget_bytes) {
  while (auto const i = state_.board.next()) {
    auto const op = spec_.program->instructions[*i].op;
    if (op != plan::Opcode::copy && op != plan::Opcode::reduce) {
      go_on(*i);
      continue;
    }
    auto const ready = state_.board.ready(*i) - state_.board.done(*i);
    if (ready == 0) continue;
    auto const bytes = std::min(ready, state_.segment_bytes);
    state_.workspace.work(*i, bytes);
    state_.board.advance(*i, bytes);
    if (bytes < ready) state_.board.wake(*i);
    budget_bytes -= std::min(budget_bytes, bytes);
    if (budget_bytes == 0) break;
  }
  return !state_.board.idle();
}

void Run::go_on(std::uint32_t i) {
  auto const [index, message] = places_[i];
  if (spec_.program->instructions[i].op == plan::Opcode::send) {
    auto& channel = sends_[index];
    channel.wake(message);
    if (channel.outlet != nullptr && channel.has_frame()) channel.outlet->schedule(channel);
  } else {
    auto& channel = receives_[index];
    channel.wake(message);
    if (channel.inlet != nullptr && channel.has_grant()) channel.inlet->schedule(channel);
  }
}

bool Run::finished() const {
  auto const is_finished = [](auto const& channel) { return channel.finished(); };
  return state_.board.finished() && std::all_of(sends_.begin(), sends_.end(), is_finished) &&
         std::all_of(receives_.begin(), receives_.end(), is_finished);
}

std::optional<plan::Rank> Run::rank_of(std::string const& worker, std::uint64_t incarnation) const {
  for (auto const& member : spec_.members)
    if (member.worker == worker && member.incarnation == incarnation) return member.rank;
  return std::nullopt;
}

std::string Run::name_of(plan::Rank rank) const {
  return "rank " + std::to_string(rank) + (rank < spec_.members.size() ? " (" + spec_.members[rank].worker + ")" : "");
}

Run::Answer Run::judge(links::Open const& open, std::uint32_t epoch, std::string const& description,
                       std::string const& worker, std::uint64_t incarnation) {
  auto const refuse = [&](EngineErrc code, std::string why) {
    return Answer{
        nullptr, {code, "run " + std::to_string(spec_.run) + ": " + std::move(why), {open.sender_rank}, {}}, false};
  };
  auto const self = spec_.program->rank;
  if (open.token != spec_.token) return refuse(EngineErrc::forbidden, worker + " presented a wrong token");
  if (open.sender_rank >= spec_.members.size() || spec_.members[open.sender_rank].worker != worker)
    return refuse(EngineErrc::forbidden, worker + " is not rank " + std::to_string(open.sender_rank));
  auto const& member = spec_.members[open.sender_rank];
  if (epoch != spec_.epoch)
    return refuse(EngineErrc::epoch_fenced, name_of(open.sender_rank) + " is at epoch " + std::to_string(epoch) + ", " +
                                                name_of(self) + " at epoch " + std::to_string(spec_.epoch));
  if (member.incarnation != incarnation)
    return refuse(EngineErrc::epoch_fenced, name_of(open.sender_rank) + " is of another incarnation than the group's");
  auto const found = std::find_if(receives_.begin(), receives_.end(),
                                  [&](auto const& channel) { return channel.peer() == open.sender_rank; });
  bool const agrees = open.fingerprint == spec_.fingerprint && open.receiver_rank == self && found != receives_.end() &&
                      found->digest() == open.channel_digest && open.eager_bytes == state_.eager_bytes;
  if (!agrees) {
    std::string hint;
    if (open.eager_bytes != state_.eager_bytes)
      hint = " with another eager budget";
    else if (description == spec_.description)
      hint = " by another plan";
    auto answer =
        refuse(EngineErrc::plan_mismatch, name_of(self) + " runs '" + spec_.description + "', " +
                                              name_of(open.sender_rank) + " runs '" + description + "'" + hint);
    answer.refusal.culprits = {std::min(self, open.sender_rank), std::max(self, open.sender_rank)};
    answer.fails_the_run = true;
    return answer;
  }
  if (found->is_opened()) return refuse(EngineErrc::protocol_error, name_of(open.sender_rank) + " opened it twice");
  Answer accepted;
  accepted.channel = &*found;
  return accepted;
}

void Run::heard(plan::Rank rank) { heard_[rank] = true; }

Run::TimePoint Run::next_deadline() const {
  return std::min(in_grace_ ? spec_.deadline + grace : spec_.deadline, next_inquiry_);
}

std::vector<Run::Wait> Run::waits() const {
  std::vector<Wait> waits;
  auto const add = [&waits](auto const& channel) {
    if (!channel.waits_for_peer()) return;
    bool const is_known =
        std::any_of(waits.begin(), waits.end(), [&](Wait const& wait) { return wait.rank == channel.peer(); });
    if (!is_known) waits.push_back({channel.peer(), channel.where()});
  };
  // A rank that only waits in turn is not to blame: what it lacks is this rank's to send.
  for (auto const& channel : receives_) add(channel);
  for (auto const& channel : sends_) add(channel);
  return waits;
}

std::optional<std::string> Run::waits_where(plan::Rank rank) const {
  for (auto& wait : waits())
    if (wait.rank == rank) return std::move(wait.where);
  return std::nullopt;
}

std::vector<plan::Rank> Run::begin_inquiry(TimePoint now) {
  until_inquiry_ = std::min(until_inquiry_ * 2, inquiry_);
  next_inquiry_ = now + until_inquiry_;
  if (!witness_) witness_.emplace(spec_.members.size());
  std::vector<plan::Rank> ranks;
  for (auto const& wait : waits()) ranks.push_back(wait.rank);
  return ranks;
}

std::optional<Failure> Run::lost_in_silence(TimePoint now) const {
  if (!witness_) return std::nullopt;
  for (auto const& wait : waits()) {
    auto const owing = witness_->owing(wait.rank, now);
    if (owing < silence_) continue;
    return Failure{EngineErrc::peer_lost,
                   "lost " + name_of(wait.rank) + " while " + wait.where + ": it has not answered for " +
                       std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(owing).count()) + " ms",
                   {wait.rank},
                   {}};
  }
  return std::nullopt;
}

// Where there is a link from it, what it sent may still be on its way; and one that it has just dialed is known here in
// a moment.
std::optional<Failure> Run::lost_on_the_way(std::function<bool(Peer const&)> const& has_link_from) const {
  if (!witness_) return std::nullopt;
  for (auto const& wait : waits()) {
    auto const ended_for = witness_->ended_for(wait.rank);
    if (!ended_for || *ended_for < (has_link_from(spec_.members[wait.rank]) ? silence_ : moment)) continue;
    return Failure{EngineErrc::peer_lost,
                   "lost what " + name_of(wait.rank) + " sent while " + wait.where +
                       ": its part of the run has ended, and the link is gone",
                   {wait.rank},
                   {}};
  }
  return std::nullopt;
}

std::optional<std::string> Run::awaits_open_of(plan::Rank rank) const {
  for (auto const& channel : receives_)
    if (channel.peer() == rank && !channel.is_opened()) return channel.where();
  return std::nullopt;
}

std::optional<Suspect> Run::suspect(Wait const& wait, TimePoint now) const {
  if (!witness_) return std::nullopt;
  auto const self = spec_.program->rank;
  return witness_->suspect(wait.rank, self, name_of(self) + " waits for it, " + wait.where, now);
}

// The gravest, and of equals the one that has been like that for the longest time.
std::optional<Suspect> Run::suspect(TimePoint now) const {
  std::optional<Suspect> worst;
  for (auto const& wait : waits())
    if (auto found = suspect(wait, now))
      if (!worst || std::pair(found->kind, found->lasting) > std::pair(worst->kind, worst->lasting))
        worst = std::move(found);
  return worst;
}

std::optional<Failure> Run::expired(TimePoint now) {
  if (now < (in_grace_ ? spec_.deadline + grace : spec_.deadline)) return std::nullopt;
  using links::Suspicion;
  std::vector<Suspect> suspects;
  for (auto const& wait : waits()) {
    // Without an answer there is what was heard of it before.
    auto const kind = heard_[wait.rank] ? Suspicion::slow : Suspicion::not_called;
    suspects.push_back(suspect(wait, now).value_or(Suspect{wait.rank, kind, {}, wait.where}));
  }
  auto worst = Suspicion::nobody;
  for (auto const& suspect : suspects) worst = std::max(worst, suspect.kind);
  // Somebody else may know better, and says so at this same deadline.
  if (worst <= Suspicion::slow && !in_grace_ && spec_.members.size() > 2) {
    in_grace_ = true;
    return std::nullopt;
  }
  Failure failure;
  failure.code = EngineErrc::deadline_exceeded;
  auto const allowed = std::chrono::duration_cast<std::chrono::milliseconds>(spec_.deadline - started_).count();
  failure.text = "not finished after " + std::to_string(allowed) + " ms";
  for (auto const& [rank, kind, lasting, text] : suspects) {
    if (kind != worst) continue;
    if (std::find(failure.culprits.begin(), failure.culprits.end(), rank) != failure.culprits.end()) continue;
    failure.culprits.push_back(rank);
    auto const ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lasting).count()) + " ms";
    failure.text += (failure.culprits.size() == 1 ? ": " : ", ") + name_of(rank);
    if (kind == Suspicion::not_called) failure.text += " never called";
    if (kind == Suspicion::slow) failure.text += " was slow, " + text;
    if (kind == Suspicion::silent) failure.text += " has not answered for " + ms + "; " + text;
  }
  std::sort(failure.culprits.begin(), failure.culprits.end());
  return failure;
}

std::chrono::nanoseconds Run::look_for_progress(TimePoint now) {
  auto const seen = state_.board.progress() + state_.board.completed();
  if (std::exchange(progress_seen_, seen) != seen) still_since_ = now;
  return now - still_since_;
}

RunProgress Run::progress(TimePoint now) const {
  auto const& program = *spec_.program;
  RunProgress progress;
  progress.run = spec_.run;
  progress.group = spec_.group;
  progress.epoch = spec_.epoch;
  progress.description = spec_.description;
  progress.rank = program.rank;
  progress.ranks = program.spec.ranks;
  progress.seconds = std::chrono::duration<double>(now - started_).count();
  progress.still_seconds = std::chrono::duration<double>(now - still_since_).count();
  progress.steps_done = state_.board.completed();
  progress.steps = static_cast<std::uint32_t>(program.instructions.size());
  progress.bytes_sent = state_.bytes_sent;
  progress.bytes_received = state_.bytes_received;
  for (std::uint32_t i = 0; i < progress.steps && progress.standing.size() < RunProgress::standing_max; ++i) {
    if (!state_.board.is_under_way(i)) continue;
    auto const& instruction = program.instructions[i];
    progress.standing.push_back(
        {i, instruction.op, instruction.peer, instruction.message, state_.board.done(i), state_.board.total(i)});
  }
  for (auto& wait : waits()) {
    Awaited awaited{wait.rank, spec_.members[wait.rank].worker, std::move(wait.where), {}, {}};
    if (auto const found = suspect(wait, now); found && found->rank == wait.rank) {
      awaited.suspicion = found->kind;
      awaited.lasting = found->lasting;
    }
    progress.waiting_for.push_back(std::move(awaited));
  }
  return progress;
}

void Run::end(std::optional<Failure> const& failure, TimePoint now) {
  ended_ = true;
  auto const seconds = [](auto duration) { return std::chrono::duration<double>(duration).count(); };
  RunResult result;
  if (failure) {
    result.status = Error(failure->code, failure->detail());
    result.culprits = failure->culprits;
  }
  result.started = started_;
  result.duration = now - started_;
  result.seconds = seconds(result.duration);
  result.bytes_sent = state_.bytes_sent;
  result.bytes_received = state_.bytes_received;
  result.steps = state_.board.completed();
  result.reduced = state_.workspace.reduced();
  result.instructions = timeline_.steps(state_.board.totals());
  result.wait_seconds = waited_seconds(result.instructions,
                                       std::chrono::duration_cast<std::chrono::nanoseconds>(result.duration).count());
  auto const done = std::move(done_);
  spec_.owner.reset();
  done(std::move(result));
}

}  // namespace chorus::engine
