#include "worker/service/runner.hpp"

#include "collectives/plan/digest.hpp"
#include "http/logging/log.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/errc.hpp"
#include "worker/engine/run_identity.hpp"
#include "worker/service/digest.hpp"
#include "worker/service/flight_routes.hpp"
#include "worker/service/pending.hpp"
#include "worker/service/problems.hpp"
#include "worker/service/run_memory.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

// Up to here they take microseconds: less than handing them to another thread.
constexpr std::size_t inline_digest_bytes = 64 << 10;
constexpr std::size_t inline_level_bytes = 512 << 10;

// Where workers have several tensors of the name, the average is over all of them, and each rank divides its result.
bool averages_at_the_end(RunOrder const& order) {
  return order.contributions > 0 && order.reduce == ReduceOp::avg && reduces(order.spec.op);
}

std::uint64_t microseconds(steady_clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

std::string_view state_of(RunEnd const& end) {
  if (!end.problem) return "succeeded";
  return end.problem->code == ProblemCode::cancelled ? "cancelled" : "failed";
}

}  // namespace

// A run between its order and its start: the data plane does not know it yet, so an abort has to be kept for it here.
class Runner::Preparation {
 public:
  Preparation(Runner& runner, std::uint64_t run) : runner_(runner), run_(run) { runner_.preparing_[run]; }
  ~Preparation() { end(); }
  Preparation(Preparation const&) = delete;
  Preparation& operator=(Preparation const&) = delete;

  void end() { runner_.preparing_.erase(run_); }

 private:
  Runner& runner_;
  std::uint64_t const run_;
};

void Runner::abort(std::uint64_t run, Error why) {
  if (auto const found = preparing_.find(run); found != preparing_.end())
    found->second = std::move(why);
  else
    parts_.plane.abort(run, std::move(why));
}

engine::RunSpec Runner::to_spec(RunOrder const& order, RunMemory const& memory) {
  engine::RunSpec spec;
  spec.run = order.run;
  spec.group = order.group;
  spec.epoch = order.epoch;
  spec.token = order.token;
  spec.description = engine::describe(order.spec, memory.dtype, order.sizes, order.reduce);
  spec.fingerprint = engine::fingerprint(order.spec, memory.dtype, order.sizes, order.reduce);
  auto const must_agree = [&spec](std::uint64_t number, std::string const& text) {
    spec.fingerprint = plan::digest(&number, sizeof number, spec.fingerprint);
    spec.description += text;
  };
  if (averages_at_the_end(order))
    must_agree(order.contributions, " over " + std::to_string(order.contributions) + " contributions");
  if (memory.level && memory.level->agreement() != 0)
    must_agree(memory.level->agreement(), memory.level->agreement_text());
  spec.program = memory.part.program;
  spec.members = order.members;
  spec.dtype = memory.dtype;
  spec.reduce = averages_at_the_end(order) ? ReduceOp::sum : order.reduce;
  spec.sizes = order.sizes;
  spec.input = memory.input();
  spec.output = memory.output();
  spec.owner = memory.owner();
  spec.segment_bytes = order.schedule.segment_bytes;
  spec.window = order.schedule.window;
  spec.deadline = order.deadline;
  return spec;
}

awaitable<std::string> Runner::digest_of(std::shared_ptr<void const> owner, std::span<std::byte const> bytes) {
  if (bytes.size() <= inline_digest_bytes) co_return fast_digest(bytes);
  auto const compute = [owner = std::move(owner), bytes] { return fast_digest(bytes); };
  co_return co_await parts_.helper.compute(compute);
}

// Levels of several tensors are worked on where it takes least.
awaitable<void> Runner::combine(std::shared_ptr<LowerLevel> level) {
  if (level->elements() * element_bytes(level->dtype()) <= inline_level_bytes) {
    level->combine();
    co_return;
  }
  auto const work = [level] {
    level->combine();
    return std::string();
  };
  static_cast<void>(co_await parts_.helper.compute(work));
}

awaitable<void> Runner::spread(std::shared_ptr<LowerLevel> level, std::shared_ptr<tensors::Block> result) {
  if (result->size_bytes() <= inline_level_bytes) {
    level->spread(result->bytes());
    co_return;
  }
  auto const work = [level, result] {
    level->spread(result->bytes());
    return std::string();
  };
  static_cast<void>(co_await parts_.helper.compute(work));
}

awaitable<Result<std::uint64_t>> Runner::commit(HeldResult result) {
  co_return co_await std::move(result).commit(parts_.store, parts_.helper);
}

// The other members' calls have begun: they need not wait for this one until their deadline. What the coordinator
// launches it ends itself.
void Runner::give_up(RunOrder const& order, Problem const& why) {
  bool const is_call_of_members = order.run >> 63 != 0;
  if (!is_call_of_members) return;
  engine::RunSpec spec;
  spec.run = order.run;
  spec.epoch = order.epoch;
  spec.token = order.token;
  spec.members = order.members;
  spec.deadline = order.deadline;
  auto const& self = order.members.at(order.rank);
  parts_.plane.give_up(spec, order.rank,
                       Error(engine::EngineErrc::aborted, "rank " + std::to_string(order.rank) + " (" + self.worker +
                                                              ") could not begin: " + why.detail));
}

awaitable<Checked<RunEnd>> Runner::run(RunOrder order) {
  Preparation preparation(*this, order.run);
  auto memory = co_await acquire(order);
  if (!memory) {
    give_up(order, memory.error());
    co_return memory.error();
  }
  if (auto problem = memory->damage()) {
    give_up(order, *problem);
    co_return std::move(*problem);
  }
  if (memory->level && memory->part.brings) co_await combine(memory->level);
  auto spec = to_spec(order, *memory);

  RunEnd end;
  bool const digests = order.digests && order.spec.op != Op::barrier;
  bool const is_gone = memory->overwritten != nullptr;  // the input, afterwards
  if (digests && is_gone && memory->part.brings)
    end.input_digest = co_await digest_of(memory->owner(), memory->input());
  if (auto const& why = preparing_.at(order.run)) co_return to_problem(*why, {});
  preparation.end();
  end.started = steady_clock::now();
  end.started_us = microseconds(end.started);
  parts_.metrics.run_begun(order.spec.op);
  auto const pending = std::make_shared<Pending<engine::RunResult>>(parts_.control);
  parts_.plane.start(std::move(spec), [pending](engine::RunResult result) {
    Pending<engine::RunResult>::resolve(pending, std::move(result));
  });
  auto result = co_await pending->take();

  if (!result.instructions.empty()) end.started = result.started;
  end.instructions = std::move(result.instructions);
  end.gpu_spans = std::move(result.gpu_spans);
  end.seconds = result.seconds;
  end.wait_seconds = result.wait_seconds;
  end.bytes_sent = result.bytes_sent;
  end.bytes_received = result.bytes_received;
  end.steps = result.steps;
  end.reduced = result.reduced;
  if (result.status && memory->level && memory->part.gets) {
    co_await spread(memory->level, memory->beside);
  } else if (result.status && averages_at_the_end(order) && memory->part.gets) {
    auto const output = memory->output();
    devices::find_divide(memory->dtype)(output.data(), output.size() / element_bytes(memory->dtype),
                                        static_cast<std::uint32_t>(order.contributions));
  }
  end.result = memory->result();
  if (!result.status) {
    end.problem = to_problem(result.status.error(), result.culprits);
  } else if (digests) {
    if (!is_gone && memory->part.brings) end.input_digest = co_await digest_of(memory->owner(), memory->input());
    if (memory->part.gets) end.output_digest = co_await digest_of(memory->owner(), memory->output());
  }
  // A peer that was sent nothing because of it is not to blame.
  if (auto problem = memory->damage()) {
    problem->ranks = {order.rank};
    end.problem = std::move(*problem);
  }
  record(order, *memory, end);
  if (end.problem) end.result.drop();  // in place the memory is not ours any more from here on
  co_return end;
}

void Runner::record(RunOrder const& order, RunMemory const& memory, RunEnd& end) {
  metrics::FinishedRun run;
  run.op = order.spec.op;
  run.algorithm = order.spec.algorithm;
  run.result = state_of(end);
  if (end.problem) run.kind = http::kind(end.problem->code).name;
  run.ranks = order.spec.ranks;
  run.bytes = memory.bytes();
  run.seconds = end.seconds;
  run.steps = end.steps;
  run.wait_seconds = end.wait_seconds;
  run.dtype = memory.dtype;
  run.reduced_bytes = end.reduced.bytes;
  run.reduce_seconds = end.reduced.seconds;
  parts_.metrics.run_finished(run);

  auto kind = std::make_shared<engine::FlightKind>();
  kind->group = order.group;
  kind->epoch = order.epoch;
  kind->op = order.spec.op;
  kind->algorithm = order.spec.algorithm;
  kind->rank = order.rank;
  kind->ranks = order.spec.ranks;
  kind->tensor = order.tensor;
  if (!order.fused.empty())
    kind->tensor = order.fused.front() + " and " + std::to_string(order.fused.size() - 1) + " more";
  kind->dtype = memory.dtype;
  kind->elements = memory.bytes() / element_bytes(memory.dtype);
  kind->path = "links";
  engine::Flight flight;
  flight.kind = std::move(kind);
  flight.run = order.run;
  flight.trace_id = order.trace_id;
  flight.state = state_of(end);
  if (end.problem) flight.error = std::string(run.kind) + ": " + end.problem->detail;
  flight.started = end.started;
  flight.seconds = end.seconds;
  flight.wait_seconds = end.wait_seconds;
  flight.bytes_sent = end.bytes_sent;
  flight.bytes_received = end.bytes_received;
  flight.steps = end.steps;
  flight.instructions = std::move(end.instructions);
  flight.gpu_spans = std::move(end.gpu_spans);
  logging::write(parts_.log, end.problem ? spdlog::level::warn : spdlog::level::debug, "run.ended",
                 "run of " + std::string(name(order.spec.op)) + " " + flight.state +
                     (end.problem ? ": " + end.problem->detail : std::string()),
                 {run_field(order.run),
                  {"group", order.group},
                  {"epoch", order.epoch},
                  {"rank", order.rank},
                  {"seconds", end.seconds},
                  {"trace_id", order.trace_id}});
  parts_.flights.add(std::move(flight));
}

}  // namespace chorus::service
