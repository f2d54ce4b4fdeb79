#include "worker/service/runner.hpp"

#include "collectives/plan/digest.hpp"
#include "http/logging/log.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/errc.hpp"
#include "worker/engine/run_identity.hpp"
#include "worker/service/digest.hpp"
#include "worker/service/flight_routes.hpp"
#include "worker/service/fused_list.hpp"
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

bool wants_digests(RunOrder const& order) { return order.digests && order.spec.op != Op::barrier; }

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
  spec.gpu = memory.gpu;
  spec.owner = memory.owner();
  spec.segment_bytes = order.schedule.segment_bytes.value_or(api::default_segment_bytes);
  spec.window = order.schedule.window;
  spec.deadline = order.deadline;
  return spec;
}

awaitable<Result<std::string>> Runner::digest_of(RunMemory const& memory, std::span<std::byte const> bytes) {
  if (memory.gpu == nullptr && bytes.size() <= inline_digest_bytes) co_return fast_digest(bytes);
  auto const status = std::make_shared<Status>();
  auto const compute = [owner = memory.owner(), gpu = memory.gpu, bytes, status] {
    if (gpu == nullptr) return fast_digest(bytes);
    FastDigester digester;
    *status = gpu->read(bytes, [&digester](std::span<std::byte const> piece) { digester.add(piece); });
    return digester.finish();
  };
  auto digest = co_await parts_.helper.compute(compute);
  if (!*status) co_return status->error();
  co_return digest;
}

// The result, by all contributions; on a GPU where it lies.
awaitable<Status> Runner::divide(RunOrder const& order, RunMemory const& memory) {
  auto const output = memory.output();
  auto const divisor = static_cast<std::uint32_t>(order.contributions);
  if (memory.gpu == nullptr) {
    devices::find_divide(memory.dtype)(output.data(), output.size() / element_bytes(memory.dtype), divisor);
    co_return ok();
  }
  auto const status = std::make_shared<Status>();
  auto const work = [owner = memory.owner(), gpu = memory.gpu, output, dtype = memory.dtype, divisor, status] {
    *status = gpu->divide(output, dtype, divisor);
    return std::string();
  };
  static_cast<void>(co_await parts_.helper.compute(work));
  co_return *status;
}

// Levels of several tensors are worked on where it takes least; who waits for a GPU does that elsewhere.
awaitable<Status> Runner::combine(std::shared_ptr<LowerLevel> level) {
  bool const is_small = level->elements() * element_bytes(level->dtype()) <= inline_level_bytes;
  if (is_small && level->gpu() == nullptr) co_return level->combine();
  auto const status = std::make_shared<Status>();
  auto const work = [level, status] {
    *status = level->combine();
    return std::string();
  };
  static_cast<void>(co_await parts_.helper.compute(work));
  co_return *status;
}

awaitable<Status> Runner::spread(std::shared_ptr<LowerLevel> level, std::shared_ptr<tensors::Block> result) {
  if (result->size_bytes() <= inline_level_bytes && level->gpu() == nullptr) co_return level->spread(result->bytes());
  auto const status = std::make_shared<Status>();
  auto const work = [level, result, status] {
    *status = level->spread(result->bytes());
    return std::string();
  };
  static_cast<void>(co_await parts_.helper.compute(work));
  co_return *status;
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
  if (memory->level && memory->part.brings)
    if (auto const combined = co_await combine(memory->level); !combined) {
      auto problem = to_problem(combined.error(), {order.rank});
      give_up(order, problem);
      co_return problem;
    }
  auto spec = to_spec(order, *memory);

  RunEnd end;
  bool const is_gone = memory->overwritten != nullptr;  // the input, afterwards
  if (wants_digests(order) && is_gone && memory->part.brings) {
    auto digest = co_await digest_of(*memory, memory->input());
    if (!digest) {
      auto problem = to_problem(digest.error(), {order.rank});
      give_up(order, problem);
      co_return problem;
    }
    end.input_digest = std::move(*digest);
  }
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

  if (result.trace) {
    if (!result.trace->instructions.empty()) end.started = result.started;
    end.instructions = std::move(result.trace->instructions);
    end.gpu = result.trace->gpu;
    end.gpu_spans = std::move(result.trace->gpu_spans);
  }
  end.seconds = result.seconds();
  end.wait_seconds = result.wait_seconds;
  end.bytes_sent = result.bytes_sent;
  end.bytes_received = result.bytes_received;
  end.steps = result.steps;
  end.reduced = result.reduced;
  if (!result.status) {
    end.problem = to_problem(result.status.error(), result.culprits);
  } else if (auto const finished = co_await finish(order, *memory, end); !finished) {
    end.problem = to_problem(finished.error(), {order.rank});
  }
  end.result = memory->result();
  // A peer that was sent nothing because of it is not to blame.
  if (auto problem = memory->damage()) {
    problem->ranks = {order.rank};
    end.problem = std::move(*problem);
  }
  record(order, *memory, end);
  if (end.problem) end.result.drop();  // in place the memory is not ours any more from here on
  co_return end;
}

// Of a run that ended well, what is left to do here.
awaitable<Status> Runner::finish(RunOrder const& order, RunMemory const& memory, RunEnd& end) {
  if (memory.level && memory.part.gets) {
    if (auto const spread_out = co_await spread(memory.level, memory.beside); !spread_out) co_return spread_out;
  } else if (averages_at_the_end(order) && memory.part.gets) {
    if (auto const divided = co_await divide(order, memory); !divided) co_return divided;
  }
  if (!wants_digests(order)) co_return ok();
  bool const is_gone = memory.overwritten != nullptr;
  if (!is_gone && memory.part.brings) {
    auto digest = co_await digest_of(memory, memory.input());
    if (!digest) co_return digest.error();
    end.input_digest = std::move(*digest);
  }
  if (memory.part.gets) {
    auto digest = co_await digest_of(memory, memory.output());
    if (!digest) co_return digest.error();
    end.output_digest = std::move(*digest);
  }
  co_return ok();
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
  run.gpu_reduced_bytes = end.gpu.folded_bytes;
  run.gpu_reduce_seconds = end.gpu.compute_seconds;
  parts_.metrics.run_finished(run);

  auto kind = std::make_shared<engine::FlightKind>();
  kind->group = order.group;
  kind->epoch = order.epoch;
  kind->op = order.spec.op;
  kind->algorithm = order.spec.algorithm;
  kind->rank = order.rank;
  kind->ranks = order.spec.ranks;
  kind->tensor = order.tensor;
  if (order.fused) kind->tensor = names_of(*order.fused, order.portion);
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
                 "run of " + std::string(name(order.spec.op)) + " " + std::string(flight.state) +
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
