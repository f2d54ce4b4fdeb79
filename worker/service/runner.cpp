#include "worker/service/runner.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "collectives/algorithms/catalogue.hpp"
#include "http/api/membership.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/run_identity.hpp"
#include "worker/service/digest.hpp"
#include "worker/service/pending.hpp"
#include "worker/service/problems.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

// Up to here a digest takes microseconds: less than handing it to another thread.
constexpr std::size_t inline_digest_bytes = 64 << 10;

// How long an in-place run waits for readers of its tensor to finish.
constexpr std::chrono::seconds patience_with_readers{1};

Problem mismatch(RunOrder const& order, char const* pointer, std::string const& expected, std::string const& found) {
  Problem problem(ProblemCode::mismatch, "tensor " + order.tensor + " on rank " + std::to_string(order.rank) + " is " +
                                             found + ", admitted was " + expected);
  problem.ranks = {order.rank};
  problem.errors.push_back({pointer, "expected " + expected + ", found " + found});
  return problem;
}

std::optional<Problem> check_admitted(RunOrder const& order, tensors::Tensor const& tensor) {
  if (!order.admitted) return std::nullopt;
  auto const& admitted = *order.admitted;
  if (tensor.dtype != admitted.dtype)
    return mismatch(order, "/dtype", std::string(name(admitted.dtype)), std::string(name(tensor.dtype)));
  if (tensor.elements() != admitted.elements)
    return mismatch(order, "/elements", std::to_string(admitted.elements) + " elements",
                    std::to_string(tensor.elements()) + " elements");
  if (tensor.version != admitted.version)
    return mismatch(order, "/version", "version " + std::to_string(admitted.version),
                    "version " + std::to_string(tensor.version));
  return std::nullopt;
}

// Result and input have the same size in all_reduce only; the other operations have no plans yet.
std::optional<Problem> check_supported(RunOrder const& order, Dtype dtype) {
  if (order.spec.op != Op::all_reduce)
    return Problem(ProblemCode::unsupported, std::string(name(order.spec.op)) + " is not supported by this build");
  bool const divides = order.reduce == ReduceOp::avg;
  if (devices::find_combine(order.reduce, dtype) != nullptr && (!divides || devices::find_divide(dtype) != nullptr))
    return std::nullopt;
  return Problem(ProblemCode::unsupported, "reduce " + std::string(name(order.reduce)) + " of " +
                                               std::string(name(dtype)) + " is not supported by this build");
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

// Where a run reads and writes, and what keeps that memory alive.
struct Runner::Memory {
  tensors::Tensor base;  // out of place with its data, in place without
  std::shared_ptr<tensors::Block> beside;
  std::shared_ptr<tensors::Store::Exclusive> overwritten;
  std::uint64_t elements = 0;

  [[nodiscard]] std::span<std::byte const> input() const {
    return overwritten ? overwritten->bytes() : base.data->bytes();
  }
  [[nodiscard]] std::span<std::byte> output() const { return overwritten ? overwritten->bytes() : beside->bytes(); }
  [[nodiscard]] std::shared_ptr<void const> owner() const {
    if (overwritten) return overwritten;
    return std::make_shared<std::pair<std::shared_ptr<void const>, std::shared_ptr<void const>>>(base.data, beside);
  }
  [[nodiscard]] HeldResult result() const {
    if (overwritten) return HeldResult(overwritten);
    auto description = base;
    description.data.reset();
    return {std::move(description), beside};
  }
};

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

awaitable<Checked<Runner::Memory>> Runner::acquire(RunOrder const& order) {
  auto tensor = parts_.store.get(order.tensor);
  if (!tensor) co_return to_problem(tensor.error(), {order.rank});
  if (auto problem = refusal(order, *tensor)) co_return std::move(*problem);
  Memory memory;
  memory.elements = tensor->elements();
  memory.base = std::move(*tensor);
  if (!order.spec.in_place) {
    auto block = parts_.pool.acquire(memory.base.data->size_bytes());
    if (!block) co_return to_problem(block.error(), {order.rank});
    memory.beside = std::move(*block);
    co_return memory;
  }
  memory.base.data.reset();
  auto const give_up = std::min(order.deadline, steady_clock::now() + patience_with_readers);
  for (;;) {
    auto exclusive = parts_.store.lock(order.tensor, memory.base.version);
    if (exclusive) {
      memory.overwritten = std::make_shared<tensors::Store::Exclusive>(std::move(*exclusive));
      co_return memory;
    }
    if (exclusive.error().code != tensors::TensorErrc::busy || steady_clock::now() >= give_up)
      co_return to_problem(exclusive.error(), {order.rank});
    boost::asio::steady_timer pause(parts_.control, std::chrono::milliseconds(1));
    co_await pause.async_wait(boost::asio::use_awaitable);
    if (auto const& why = preparing_.at(order.run)) co_return to_problem(*why, {});
  }
}

std::optional<Problem> Runner::refusal(RunOrder const& order, tensors::Tensor const& tensor) {
  if (auto problem = check_admitted(order, tensor)) return problem;
  if (auto problem = check_supported(order, tensor.dtype)) return problem;
  if (auto const program = find_program(order); !program) return program.error();
  return std::nullopt;
}

Checked<std::shared_ptr<plan::Program const>> Runner::find_program(RunOrder const& order) {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return invalid_field("/algorithm", algorithm.error().detail);
  auto program = parts_.plans.get(**algorithm, order.spec, order.rank);
  if (!program) return to_problem(program.error());
  return std::move(*program);
}

Checked<engine::RunSpec> Runner::to_spec(RunOrder const& order, Memory const& memory) {
  auto program = find_program(order);
  if (!program) return program.error();

  engine::RunSpec spec;
  spec.run = order.run;
  spec.epoch = order.epoch;
  spec.token = order.token;
  spec.description = engine::describe(order.spec, memory.base.dtype, memory.elements, order.reduce);
  spec.fingerprint = engine::fingerprint(order.spec, memory.base.dtype, memory.elements, order.reduce);
  spec.program = std::move(*program);
  spec.members = order.members;
  spec.dtype = memory.base.dtype;
  spec.reduce = order.reduce;
  spec.elements = memory.elements;
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

awaitable<Checked<RunEnd>> Runner::run(RunOrder order) {
  Preparation preparation(*this, order.run);
  auto memory = co_await acquire(order);
  if (!memory) co_return memory.error();
  auto spec = to_spec(order, *memory);
  if (!spec) co_return spec.error();

  RunEnd end;
  // In place the input is gone afterwards.
  if (order.digests && order.spec.in_place) end.input_digest = co_await digest_of(memory->owner(), memory->input());
  if (auto const& why = preparing_.at(order.run)) co_return to_problem(*why, {});
  preparation.end();
  end.started_us = microseconds(steady_clock::now());
  auto const pending = std::make_shared<Pending<engine::RunResult>>(parts_.control);
  parts_.plane.start(std::move(*spec), [pending](engine::RunResult result) {
    Pending<engine::RunResult>::resolve(pending, std::move(result));
  });
  auto const result = co_await pending->take();

  end.seconds = result.seconds;
  end.wait_seconds = result.wait_seconds;
  end.bytes_sent = result.bytes_sent;
  end.bytes_received = result.bytes_received;
  end.steps = result.steps;
  end.result = memory->result();
  if (!result.status) {
    end.problem = to_problem(result.status.error(), result.culprits);
    end.result.drop();
  } else if (order.digests) {
    if (!order.spec.in_place) end.input_digest = co_await digest_of(memory->owner(), memory->input());
    end.output_digest = co_await digest_of(memory->owner(), memory->output());
  }
  record(order, *memory, end);
  co_return end;
}

void Runner::record(RunOrder const& order, Memory const& memory, RunEnd const& end) {
  metrics::FinishedRun run;
  run.op = order.spec.op;
  run.algorithm = order.spec.algorithm;
  run.result = state_of(end);
  if (end.problem) run.kind = http::kind(end.problem->code).name;
  run.ranks = order.spec.ranks;
  run.bytes = memory.elements * element_bytes(memory.base.dtype);
  run.seconds = end.seconds;
  run.steps = end.steps;
  parts_.metrics.run_finished(run);

  Flight flight;
  flight.run = order.run;
  flight.group = order.group;
  flight.epoch = order.epoch;
  flight.op = name(order.spec.op);
  flight.algorithm = order.spec.algorithm;
  flight.rank = order.rank;
  flight.ranks = order.spec.ranks;
  flight.tensor = order.tensor;
  flight.dtype = name(memory.base.dtype);
  flight.elements = memory.elements;
  flight.state = state_of(end);
  if (end.problem) flight.error = std::string(run.kind) + ": " + end.problem->detail;
  flight.started_us = end.started_us;
  flight.seconds = end.seconds;
  flight.wait_seconds = end.wait_seconds;
  flight.bytes_sent = end.bytes_sent;
  flight.bytes_received = end.bytes_received;
  flight.steps = end.steps;
  parts_.flights.add(std::move(flight));
}

}  // namespace chorus::service
