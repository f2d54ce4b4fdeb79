#include "worker/engine/run/run.hpp"

#include <algorithm>
#include <utility>

#include "collectives/core/assert.hpp"
#include "collectives/plan/digest.hpp"
#include "collectives/plan/sizes/coded_segments.hpp"
#include "worker/engine/channels/host_receive_channel.hpp"
#include "worker/engine/channels/host_send_channel.hpp"
#include "worker/engine/gpu/gpu_receive_channel.hpp"
#include "worker/engine/gpu/gpu_send_channel.hpp"
#include "worker/engine/program/channel_messages.hpp"
#include "worker/engine/run/spec_check.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/engine/transport/receive_connection.hpp"
#include "worker/engine/transport/send_connection.hpp"

namespace chorus::engine {
namespace {

constexpr std::uint64_t segment_bytes_min = 64;
// Minimum length of a ring of partial sums, in a program with many: their sender runs a few frames ahead of the
// consumer.
constexpr std::uint64_t shortest_ring_bytes = 256 << 10;
// Limits for runs that are kept for the next call.
constexpr std::uint64_t small_bytes = 256 << 10;
constexpr std::size_t small_instructions = 1024;

std::optional<Coding> coding_of(RunSpec const& spec) {
  return spec.codes ? std::optional(Coding(*spec.codes, spec.dtype)) : std::nullopt;
}

// Average of a run with codes: terms are not scaled, as those of codes are not.
std::optional<Average> average_of(RunSpec const& spec) {
  return spec.codes ? std::optional(Average{spec.program->spec.ranks, 1}) : std::nullopt;
}

// Segments are whole elements, with codes whole units, and then no longer than plan::coded_segment_bytes_max.
std::uint64_t whole_segment(RunSpec const& spec) {
  auto const coding = coding_of(spec);
  auto const bytes = coding ? std::min(spec.segment_bytes, plan::coded_segment_bytes_max) : spec.segment_bytes;
  auto const size = coding ? coding->unit_bytes() : element_bytes(spec.dtype);
  auto const least = std::max<std::uint64_t>(segment_bytes_min, size);
  return std::clamp<std::uint64_t>(bytes, least, links::data_bytes_max) / size * size;
}

std::uint64_t sized(std::uint64_t plan_digest, std::vector<std::uint32_t> const& instructions,
                    Scoreboard const& board) {
  std::vector<std::uint64_t> message_bytes;
  message_bytes.reserve(instructions.size());
  for (auto const i : instructions) message_bytes.push_back(board.total(i));
  return channel_digest(plan_digest, message_bytes);
}

std::optional<Workspace> workspace_of(RunSpec const& spec, std::uint64_t partials_bytes, bool on_host) {
  if (!on_host) return std::nullopt;
  return std::make_optional<Workspace>(*spec.program, spec.dtype, spec.reduce, spec.sizes,
                                       PartialsLimit{partials_bytes, std::min(spec.segment_bytes, shortest_ring_bytes)},
                                       spec.input, spec.output, average_of(spec), coding_of(spec));
}

RunState make_state(RunSpec const& spec, std::uint64_t eager_bytes, std::vector<FlowLimit> const& flow_limits,
                    Timeline& timeline) {
  auto const size = element_bytes(spec.dtype);
  return {.run = spec.run,
          .epoch = spec.epoch,
          .segment_bytes = whole_segment(spec),
          .window = std::max<std::uint32_t>(spec.window, 1),
          .eager_bytes = eager_bytes,
          .envelope = spec.envelope,
          .program = *spec.program,
          .element_bytes = size,
          .board = Scoreboard(*spec.program, Addresses(*spec.program, spec.sizes, size, coding_of(spec)).total_bytes(),
                              flow_limits, &timeline, coding_of(spec))};
}

}  // namespace

Run::Run(RunSpec spec, RunDone done, std::unique_ptr<DeviceWork> device, DataPlaneOptions const& options, Clock& clock)
    : spec_(std::move(spec)),
      description_(std::make_shared<std::string const>(spec_.description)),
      done_(std::move(done)),
      started_(clock.now()),
      timeline_(*spec_.program, clock, started_),
      device_(std::move(device)),
      workspace_(workspace_of(spec_, options.partials_bytes, device_ == nullptr)),
      state_(make_state(spec_, options.eager_bytes, workspace_ ? workspace_->flow_limits() : std::vector<FlowLimit>(),
                        timeline_)),
      places_(spec_.program->instructions.size()),
      watch_(spec_, sends_, receives_, options.inquiry, options.silence, started_),
      still_since_(started_) {
  if (device_) device_steps_.emplace(state_, *device_);
  prepare_channels();
  is_small_ = takes_little();
  exchange_ = as_exchange(options.incarnation);
}

void Run::prepare_channels() {
  auto const& program = *spec_.program;
  auto messages = channel_messages(program);
  for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
    auto const& channel = program.channels[c];
    auto& [sends, receives] = messages[c];
    links::Open open;
    open.token = spec_.token;
    open.fingerprint = spec_.fingerprint;
    open.channel_digest = sized(channel.send_digest, sends, state_.board);
    open.receiver_incarnation = spec_.members[channel.peer].incarnation;
    open.eager_bytes = state_.eager_bytes;
    open.sender_rank = program.rank;
    open.receiver_rank = channel.peer;
    for (std::uint32_t m = 0; m < channel.sends; ++m)
      places_[sends[m]] = {static_cast<std::uint32_t>(sends_.size()), m};
    for (std::uint32_t m = 0; m < channel.receives; ++m)
      places_[receives[m]] = {static_cast<std::uint32_t>(receives_.size()), m};
    ReceiveChannel const* back = nullptr;
    if (channel.receives != 0) {
      auto const digest = sized(channel.receive_digest, receives, state_.board);
      back = receives_.emplace_back(receive_channel(c, std::move(receives), digest)).get();
    }
    if (channel.sends != 0) sends_.push_back(send_channel(c, std::move(sends), open, back));
  }
}

void Run::begin(RunCall const& call, RunDone done, TimePoint now) {
  begin_memory(call, now);
  done_ = std::move(done);
  begin_parts();
}

void Run::begin_memory(RunCall const& call, TimePoint now) {
  CHORUS_ASSERT(ended_ && workspace_ && fits(call), "a run that is over, on the host, of as many bytes");
  spec_.run = state_.run = call.run;
  spec_.input = call.input;
  spec_.output = call.output;
  spec_.deadline = call.deadline;
  spec_.envelope = state_.envelope = call.envelope;
  started_ = still_since_ = now;
  watch_.begin(now);
  workspace_->begin(call.input, call.output);
}

void Run::begin_parts() {
  timeline_.begin(started_);
  state_.board.begin();
  state_.bytes_sent = state_.bytes_received = 0;
  for (auto& channel : sends_) channel->begin();
  for (auto& channel : receives_) channel->begin();
  watch_.forget();
  progress_seen_ = 0;
  ended_ = false;
}

bool Run::fits(RunCall const& call) const {
  bool const lies_right = !is_in_one_buffer(*spec_.program) || call.input.data() == call.output.data();
  return lies_right && call.input.size() == spec_.input.size() && call.output.size() == spec_.output.size();
}

bool Run::takes_little() const {
  bool const is_of_host = workspace_.has_value();
  if (!is_of_host || spec_.program->instructions.size() > small_instructions) return false;
  auto bytes = workspace_->bytes();
  for (auto const& channel : receives_) bytes += channel->stage_bytes();
  return bytes <= small_bytes;
}

std::unique_ptr<SendChannel> Run::send_channel(std::uint32_t c, std::vector<std::uint32_t> sends,
                                               links::Open const& open, ReceiveChannel const* back) {
  auto const peer = spec_.program->channels[c].peer;
  if (!device_)
    return std::make_unique<HostSendChannel>(state_, *workspace_, peer, std::move(sends), open, spec_.description);
  return std::make_unique<GpuSendChannel>(state_, *device_, c, peer, std::move(sends), open, spec_.description, back);
}

std::unique_ptr<ReceiveChannel> Run::receive_channel(std::uint32_t c, std::vector<std::uint32_t> receives,
                                                     std::uint64_t digest) {
  auto const peer = spec_.program->channels[c].peer;
  if (!device_) return std::make_unique<HostReceiveChannel>(state_, *workspace_, peer, std::move(receives), digest);
  return std::make_unique<GpuReceiveChannel>(state_, *device_, c, peer, std::move(receives), digest);
}

bool Run::work(std::uint64_t budget_bytes) { return device_ ? work_on_device() : work_on_host(budget_bytes); }

bool Run::work_on_device() {
  while (auto const i = state_.board.next()) {
    if (spec_.program->instructions[*i].is_local())
      device_steps_->go_on(*i);
    else
      go_on(*i);
  }
  return false;
}

bool Run::work_on_host(std::uint64_t budget_bytes) {
  while (auto const i = state_.board.next()) {
    auto const op = spec_.program->instructions[*i].op;
    if (op != plan::Opcode::copy && op != plan::Opcode::reduce) {
      go_on(*i);
      continue;
    }
    auto const ready = state_.board.ready(*i) - state_.board.done(*i);
    if (ready == 0) continue;
    auto const bytes = std::min(ready, state_.segment_bytes);
    workspace_->work(*i, bytes);
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
    auto& channel = *sends_[index];
    channel.wake(message);
    if (channel.send_connection != nullptr && channel.has_frame()) channel.send_connection->schedule(channel);
  } else {
    auto& channel = *receives_[index];
    channel.wake(message);
    if (channel.receive_connection != nullptr && channel.has_word()) channel.receive_connection->schedule(channel);
  }
}

bool Run::finished() const {
  auto const is_finished = [](auto const& channel) { return channel->finished(); };
  return state_.board.finished() && std::all_of(sends_.begin(), sends_.end(), is_finished) &&
         std::all_of(receives_.begin(), receives_.end(), is_finished);
}

Run::Answer Run::judge(links::DecodedOpen const& decoded, std::uint32_t epoch, Identity const& sender) {
  auto const& open = decoded.open;
  auto const& [worker, incarnation] = sender;
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
                                  [&](auto const& channel) { return channel->peer() == open.sender_rank; });
  bool const agrees = open.fingerprint == spec_.fingerprint && open.receiver_rank == self && found != receives_.end() &&
                      (*found)->digest() == open.channel_digest && open.eager_bytes == state_.eager_bytes;
  if (!agrees) {
    auto const description = decoded.description();
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
  if ((*found)->is_opened() || (*found)->receive_connection != nullptr)
    return refuse(EngineErrc::protocol_error, name_of(open.sender_rank) + " opened it twice");
  return Answer{found->get(), {}, false};
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
  for (auto& wait : watch_.waits()) {
    Awaited awaited{wait.rank, spec_.members[wait.rank].worker, std::move(wait.where), {}, {}};
    if (auto const found = watch_.suspect(wait, now); found && found->rank == wait.rank) {
      awaited.suspicion = found->kind;
      awaited.lasting = found->lasting;
    }
    progress.waiting_for.push_back(std::move(awaited));
  }
  return progress;
}

std::optional<Failure> Run::expired(TimePoint now) {
  if (!watch_.is_over(now)) return std::nullopt;
  if (auto late = device_is_late(now)) {
    late->text = watch_.not_finished() + ": " + late->text;
    return late;
  }
  return watch_.expired(now);
}

std::optional<Failure> Run::device_is_late(TimePoint now) const {
  if (!device_ || !device_->is_at_work() || now - device_->still_since() < PeerWatch::grace) return std::nullopt;
  auto const self = spec_.program->rank;
  auto const still = std::chrono::duration_cast<std::chrono::milliseconds>(now - device_->still_since()).count();
  return Failure{EngineErrc::deadline_exceeded,
                 name_of(self) + ": " + device_->device() + " has done nothing of what was queued there for " +
                     std::to_string(still) + " ms",
                 {self},
                 {}};
}

bool Run::has_back_what_it_lent(TimePoint now) const {
  if (!device_) return true;
  return std::all_of(sends_.begin(), sends_.end(), [now](auto const& channel) {
    auto const loan = channel->loan();
    return loan == nullptr || loan->is_back(now);
  });
}

std::optional<bool> Run::may_be_written(ReceiveChannel const& channel, links::Lend const& lend) const {
  bool const may_be = spec_.gpu != nullptr && lend.writes == 1 &&
                      links::uuid_of(lend) == spec_.gpu->gpu().info().uuid && channel.peer() < spec_.program->rank &&
                      channel.may_be_written();
  auto const back = std::ranges::find(sends_, channel.peer(), [](auto const& send) { return send->peer(); });
  return may_be && back != sends_.end() && (*back)->send_connection != nullptr ? (*back)->is_borrowed() : false;
}

bool Run::writes_with(plan::Rank peer) const {
  auto const is_written = [peer](auto const& c) { return c->peer() == peer && c->is_written() && !c->finished(); };
  auto const writes = [peer](auto const& c) { return c->peer() == peer && c->writes() && !c->finished(); };
  return std::ranges::any_of(receives_, is_written) || std::ranges::any_of(sends_, writes);
}

bool Run::reads_in_place() const {
  return std::any_of(receives_.begin(), receives_.end(), [](auto const& channel) { return channel->reads_in_place(); });
}

std::optional<Failure> Run::device_failure() const {
  if (!device_ || !device_->error()) return std::nullopt;
  auto const self = spec_.program->rank;
  // Memory that a run asks for and does not get is no failure of the device.
  bool const is_short = device_->error()->code == devices::GpuErrc::out_of_memory;
  return Failure{is_short ? EngineErrc::aborted : EngineErrc::device_failed,
                 name_of(self) + ": " + device_->error()->detail,
                 {self},
                 {}};
}

void Run::end(std::optional<Failure> const& failure, TimePoint now, Memory memory) {
  ended_ = true;
  RunResult result;
  if (failure) {
    result.status = Error(failure->code, failure->detail());
    result.culprits = failure->culprits;
  }
  result.started = started_;
  auto& statistics = result.statistics;
  statistics.duration = now - started_;
  statistics.bytes_sent = state_.bytes_sent;
  statistics.bytes_received = state_.bytes_received;
  statistics.steps = state_.board.completed();
  if (workspace_) statistics.reduced = workspace_->reduced();
  result.trace = std::make_unique<RunTrace>();
  result.trace->instructions = timeline_.steps(state_.board.totals());
  statistics.wait_seconds = waited_seconds(
      result.trace->instructions, std::chrono::duration_cast<std::chrono::nanoseconds>(statistics.duration).count());
  if (device_) {
    auto report = device_->report(started_);
    result.trace->gpu = report.use;
    result.trace->gpu_spans = std::move(report.spans);
    if (!device_rests()) device_->give_up();
  }
  auto const done = std::move(done_);
  if (memory == Memory::goes) {
    device_.reset();
    spec_.owner.reset();
  }
  done(std::move(result));
}

}  // namespace chorus::engine
