#include "worker/service/collectives/runs/runner.hpp"

#include <utility>

#include "base/logging/log.hpp"
#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/digest.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/service/collectives/runs/flight_routes.hpp"
#include "worker/service/operands/fused_list.hpp"
#include "worker/service/requests/pending.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/digest.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

// Like Helper::at_once_bytes, for digests.
constexpr std::size_t inline_digest_bytes = 64 << 10;

// True if workers have several tensors of the name: the average is over all of them.
bool averages_over_parts(RunOrder const& order) {
  return order.contributions > 0 && order.reduce == ReduceOp::avg && reduces(order.spec.op);
}

std::string compression_of(RunOrder const& order) {
  return order.compression ? to_string(*order.compression) : std::string();
}

bool wants_digests(RunOrder const& order) { return order.digests && order.spec.op != Op::barrier; }

std::string_view state_of(RunEnd const& end) {
  if (!end.problem) return "succeeded";
  return end.problem->code == ProblemCode::cancelled ? "cancelled" : "failed";
}

}  // namespace

// A run between its order and its start: the data plane does not know it yet, so aborts are kept here.
class Runner::Preparation {
 public:
  Preparation(Runner& runner, std::uint64_t run) : runner_(runner), run_(run) { runner_.preparing_[run]; }
  ~Preparation() { end(); }
  Preparation(Preparation const&) = delete;
  Preparation& operator=(Preparation const&) = delete;

  // Only once: the next run of this number may be in preparation when this object is destroyed.
  void end() {
    if (!std::exchange(has_ended_, true)) runner_.preparing_.erase(run_);
  }

 private:
  Runner& runner_;
  std::uint64_t const run_;
  bool has_ended_ = false;
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
  spec.description = engine::describe(order.spec, memory.dtype, order.sizes, order.reduce, 0, compression_of(order));
  spec.fingerprint = engine::fingerprint(order.spec, memory.dtype, order.sizes, order.reduce, 0, compression_of(order));
  auto const must_agree = [&spec](std::uint64_t number, std::string const& text) {
    spec.fingerprint = plan::digest(&number, sizeof number, spec.fingerprint);
    spec.description += text;
  };
  if (averages_over_parts(order))
    must_agree(order.contributions, " over " + std::to_string(order.contributions) + " contributions");
  if (memory.level && memory.level->agreement() != 0)
    must_agree(memory.level->agreement(), memory.level->agreement_text());
  spec.program = memory.part.program;
  spec.members = order.members;
  spec.dtype = memory.carried ? memory.carried->dtype() : memory.dtype;
  spec.reduce = memory.carried ? memory.carried->reduce() : order.reduce;
  spec.sizes = memory.carried ? memory.carried->sizes() : order.sizes;
  spec.codes = engine::codes_between(order.compression, *spec.program);
  spec.input = memory.run_input();
  spec.output = memory.run_output();
  spec.gpu = memory.run_gpu();
  spec.owner = memory.owner();
  spec.segment_bytes = order.schedule.segment_bytes.value_or(api::default_segment_bytes);
  spec.window = order.schedule.window;
  spec.deadline = order.deadline;
  return spec;
}

awaitable<Result<std::string>> Runner::digest_of(RunMemory const& memory, std::span<std::byte const> bytes) {
  auto* const gpu = memory.comes_carried && bytes.data() == memory.source.data() ? memory.run_gpu() : memory.gpu;
  if (gpu == nullptr && bytes.size() <= inline_digest_bytes) co_return fast_digest(bytes);
  auto const compute = [owner = memory.owner(), gpu, bytes]() -> Result<std::string> {
    if (gpu == nullptr) return fast_digest(bytes);
    FastDigester digester;
    auto const read = gpu->read(bytes, [&digester](std::span<std::byte const> piece) { digester.add(piece); });
    if (!read) return read.error();
    return digester.finish();
  };
  co_return co_await parts_.helper.compute(compute);
}

// Small work is done at once; work that waits for a GPU goes to a helper thread.
awaitable<Status> Runner::combine(std::shared_ptr<InputAdapter> level) {
  if (is_small(*level)) co_return level->combine();
  auto const work = [level] { return level->combine(); };
  co_return co_await parts_.helper.compute(work);
}

awaitable<Status> Runner::prepare(RunMemory const& memory) {
  if (!memory.part.brings) co_return ok();
  if (memory.level)
    if (auto const combined = co_await combine(memory.level); !combined) co_return combined;
  if (!memory.carried || memory.comes_carried) co_return ok();
  co_return co_await convert(memory);
}

// Like combine().
awaitable<Status> Runner::convert(RunMemory const& memory) {
  auto const input = memory.input();
  if (input.size() <= Helper::at_once_bytes && memory.gpu == nullptr)
    co_return memory.carried->before(memory.converted(), input, nullptr, memory.feedback());
  auto const work = [owner = memory.owner(), residual = memory.residual, carried = *memory.carried,
                     to = memory.converted(), input, gpu = memory.gpu,
                     feedback = memory.feedback()] { return carried.before(to, input, gpu, feedback); };
  co_return co_await parts_.helper.compute(work);
}

awaitable<Status> Runner::convert_back(RunMemory const& memory) {
  auto const output = memory.output();
  if (output.size() <= Helper::at_once_bytes && memory.gpu == nullptr)
    co_return memory.carried->after(output, memory.run_output(), nullptr);
  auto const work = [owner = memory.owner(), carried = *memory.carried, output, left = memory.run_output(),
                     gpu = memory.gpu] { return carried.after(output, left, gpu); };
  co_return co_await parts_.helper.compute(work);
}

awaitable<Status> Runner::spread(std::shared_ptr<InputAdapter> level, std::shared_ptr<tensors::Block> result) {
  if (is_small(*level)) co_return level->spread(result->bytes());
  auto const work = [level, result] { return level->spread(result->bytes()); };
  co_return co_await parts_.helper.compute(work);
}

awaitable<Result<std::uint64_t>> Runner::commit(HeldResult result) {
  co_return co_await std::move(result).commit(parts_.store, parts_.helper);
}

// Members' calls that have begun need not wait for this one until their deadline. The coordinator itself ends the runs
// that it launches.
void Runner::give_up(RunOrder const& order, Problem const& why) {
  if (!engine::is_members_call(order.run)) return;
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
  auto memory = co_await acquisition_.acquire(order, preparing_.at(order.run));
  if (!memory) {
    give_up(order, memory.error());
    co_return memory.error();
  }
  if (auto problem = memory->damage()) {
    give_up(order, *problem);
    co_return std::move(*problem);
  }
  RunEnd end;
  bool const is_gone = memory->overwritten != nullptr;  // the run overwrites its input
  if (wants_digests(order) && is_gone && memory->part.brings) {
    auto digest = co_await digest_of(*memory, memory->input());
    if (!digest) {
      auto problem = to_problem(digest.error(), {order.rank});
      give_up(order, problem);
      co_return problem;
    }
    end.input_digest = std::move(*digest);
  }
  auto const prepared = co_await prepare(*memory);
  auto const& aborted = preparing_.at(order.run);
  if (memory->converts_in_place() && (!prepared || aborted)) memory->result().drop();
  if (!prepared) {
    auto problem = to_problem(prepared.error(), {order.rank});
    give_up(order, problem);
    co_return problem;
  }
  if (aborted) co_return to_problem(*aborted, {});
  auto spec = to_spec(order, *memory);
  preparation.end();
  end.started = steady_clock::now();
  parts_.metrics.run_begun(order.spec.op);
  auto const pending = std::make_shared<Pending<engine::RunResult>>(parts_.control);
  parts_.plane.start(std::move(spec), [pending](engine::RunResult result) {
    Pending<engine::RunResult>::resolve(pending, std::move(result));
  });
  auto result = co_await pending->take();

  if (result.trace) {
    if (!result.trace->instructions.empty()) end.started = result.started;
    end.trace = std::move(*result.trace);
  }
  end.statistics = result.statistics;
  if (!result.status) {
    end.problem = to_problem(result.status.error(), result.culprits);
  } else if (auto const finished = co_await finish(order, *memory, end); !finished) {
    end.problem = to_problem(finished.error(), {order.rank});
  }
  end.result = memory->result();
  // This rank is to blame, not a peer that got nothing because of the damage.
  if (auto problem = memory->damage()) {
    problem->ranks = {order.rank};
    end.problem = std::move(*problem);
  }
  record(order, *memory, end);
  if (end.problem) end.result.drop();  // if in place, the memory is not held any more from here on
  co_return end;
}

// The rest of a run that ended well on the data plane.
awaitable<Status> Runner::finish(RunOrder const& order, RunMemory const& memory, RunEnd& end) {
  if (memory.carried && memory.part.gets)
    if (auto const converted = co_await convert_back(memory); !converted) co_return converted;
  if (memory.level && memory.part.gets)
    if (auto const spread_out = co_await spread(memory.level, memory.beside); !spread_out) co_return spread_out;
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
  run.compression = format_sent(order);
  if (run.compression)
    run.wire_bytes = plan::wire_bytes_of(*run.compression, order.spec.op, order.spec.ranks, order.sizes);
  run.dtype = memory.dtype;
  run.statistics = end.statistics;
  run.gpu_reduced = {end.trace.gpu.folded_bytes, end.trace.gpu.compute_seconds};
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
  flight.statistics = end.statistics;
  flight.instructions = std::move(end.trace.instructions);
  flight.gpu_spans = std::move(end.trace.gpu_spans);
  logging::write(parts_.log, end.problem ? spdlog::level::warn : spdlog::level::debug, "run.ended",
                 "run of " + std::string(name(order.spec.op)) + " " + std::string(flight.state) +
                     (end.problem ? ": " + end.problem->detail : std::string()),
                 {run_field(order.run),
                  {"group", order.group},
                  {"epoch", order.epoch},
                  {"rank", order.rank},
                  {"seconds", end.statistics.seconds()},
                  {"trace_id", order.trace_id}});
  parts_.flights.add(std::move(flight));
}

}  // namespace chorus::service
