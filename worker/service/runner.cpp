#include "worker/service/runner.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "collectives/algorithms/catalogue.hpp"
#include "http/api/membership.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/engine/run_identity.hpp"
#include "worker/service/digest.hpp"
#include "worker/service/local_level.hpp"
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
  if (tensor.version != admitted.version)
    return mismatch(order, "/version", "version " + std::to_string(admitted.version),
                    "version " + std::to_string(tensor.version));
  return std::nullopt;
}

std::optional<Problem> check_reduction(RunOrder const& order, Dtype dtype) {
  if (!reduces(order.spec.op)) return std::nullopt;
  bool const divides = order.reduce == ReduceOp::avg;
  if (devices::find_combine(order.reduce, dtype) != nullptr && (!divides || devices::find_divide(dtype) != nullptr))
    return std::nullopt;
  return Problem(ProblemCode::unsupported, "reduce " + std::string(name(order.reduce)) + " of " +
                                               std::string(name(dtype)) + " is not supported by this build");
}

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

// What the plan wants of this rank.
struct Runner::Part {
  std::shared_ptr<plan::Program const> program;
  std::uint64_t input_elements = 0;  // of the memory that the program addresses
  std::uint64_t output_elements = 0;
  bool brings = false;  // a tensor; a barrier does not
  bool gets = false;    // a result
  [[nodiscard]] bool overwrites() const { return program->spec.in_place && gets; }
};

// Where a run reads and writes, and what keeps that memory alive.
struct Runner::Memory {
  Part part;
  Dtype dtype = Dtype::f32;
  std::shared_ptr<void const> source_owner;
  std::span<std::byte const> source;
  std::shared_ptr<tensors::Block> beside;                  // the result, or
  std::shared_ptr<tensors::Store::Exclusive> overwritten;  // ... the tensor's own memory
  std::shared_ptr<LocalLevel> level;                       // where the worker has several tensors of the name
  ResultPlace place;
  std::uint64_t unchanged_version = 0;  // of a tensor that only gave

  [[nodiscard]] std::span<std::byte const> input() const {
    if (part.program->input.empty()) return {};
    return overwritten ? overwritten->bytes() : source;
  }
  [[nodiscard]] std::span<std::byte> output() const {
    if (part.program->output.empty()) return {};
    return overwritten ? overwritten->bytes() : beside->bytes();
  }
  [[nodiscard]] std::uint64_t bytes() const { return std::max<std::uint64_t>(input().size(), output().size()); }
  [[nodiscard]] std::shared_ptr<void const> owner() const {
    if (overwritten) return overwritten;
    return std::make_shared<std::pair<std::shared_ptr<void const>, std::shared_ptr<void const>>>(source_owner, beside);
  }
  [[nodiscard]] HeldResult result() const {
    if (!part.gets) return HeldResult::unchanged(unchanged_version);
    if (level) return level->results();
    if (overwritten) return HeldResult(overwritten);
    return {place.tensor, dtype, place.shape, place.version, beside};
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

Checked<Runner::Part> Runner::part_of(RunOrder const& order) {
  auto program = find_program(order);
  if (!program) return program.error();
  if (auto const status = plan::check(**program, order.sizes); !status)
    return invalid_field(order.sizes.counts.empty() ? "/elements" : "/counts", status.error().detail);
  auto const layouts = plan::layouts(**program, order.sizes);
  Part part;
  part.input_elements = plan::input_elements(**program, layouts);
  part.output_elements = plan::output_elements(**program, layouts);
  auto const held = plan::holding(order.spec, order.rank, (*program)->chunks);
  bool const is_barrier = order.spec.op == Op::barrier;
  part.brings = !is_barrier && !held.input.empty();
  part.gets = !is_barrier && !held.output.empty();
  part.program = std::move(*program);
  return part;
}

awaitable<Checked<Runner::Memory>> Runner::acquire(RunOrder const& order) {
  auto part = part_of(order);
  if (!part) co_return part.error();
  Memory memory;
  memory.part = std::move(*part);
  memory.dtype = order.admitted ? order.admitted->dtype : Dtype::u8;
  if (order.parts > 0) co_return acquire_parts(order, std::move(memory));
  if (order.result) memory.place = *order.result;
  std::optional<tensors::Tensor> tensor;
  if (memory.part.brings || memory.part.overwrites()) {
    auto found = parts_.store.get(order.tensor);
    if (!found) co_return to_problem(found.error(), {order.rank});
    if (auto problem = refusal(order, &*found)) co_return std::move(*problem);
    memory.dtype = found->dtype;
    memory.unchanged_version = found->version;
    if (!order.result) memory.place = {found->name, found->shape, found->version};
    tensor = std::move(*found);
  } else if (auto problem = refusal(order, nullptr)) {
    co_return std::move(*problem);
  }
  if (memory.part.overwrites()) {
    tensor->data.reset();
    auto overwritten = co_await overwrite(order, tensor->version);
    if (!overwritten) co_return overwritten.error();
    memory.overwritten = std::move(*overwritten);
    co_return memory;
  }
  auto const width = element_bytes(memory.dtype);
  if (memory.part.brings) {
    memory.source = tensor->data->bytes();
    memory.source_owner = std::move(tensor->data);
  } else if (order.spec.op == Op::barrier) {
    auto const arrived = std::make_shared<std::byte const>(std::byte{1});
    memory.source = {arrived.get(), 1};
    memory.source_owner = arrived;
  }
  auto block = parts_.pool.acquire(memory.part.output_elements * width);
  if (!block) co_return to_problem(block.error(), {order.rank});
  memory.beside = std::move(*block);
  co_return memory;
}

Checked<Runner::Memory> Runner::acquire_parts(RunOrder const& order, Memory memory) {
  if (order.spec.in_place || order.result)
    return invalid_field(order.result ? "/result" : "/in_place",
                         "the results of several tensors of one name are their next versions");
  auto level = LocalLevel::make(order, parts_.store, parts_.pool);
  if (!level) return level.error();
  memory.level = std::move(*level);
  memory.dtype = memory.level->dtype();
  memory.unchanged_version = memory.level->version();
  if (auto problem = check_reduction(order, memory.dtype)) return std::move(*problem);
  auto const elements = std::max(memory.part.input_elements, memory.part.output_elements);
  if (memory.level->elements() != elements)
    return mismatch(order, "/elements", std::to_string(elements) + " elements",
                    std::to_string(memory.level->elements()) + " elements");
  memory.source = memory.level->combined();
  memory.source_owner = memory.level;
  auto block = parts_.pool.acquire(memory.part.output_elements * element_bytes(memory.dtype));
  if (!block) return to_problem(block.error(), {order.rank});
  memory.beside = std::move(*block);
  return memory;
}

awaitable<Checked<std::shared_ptr<tensors::Store::Exclusive>>> Runner::overwrite(RunOrder const& order,
                                                                                 std::uint64_t version) {
  auto const give_up = std::min(order.deadline, steady_clock::now() + patience_with_readers);
  for (;;) {
    auto exclusive = parts_.store.lock(order.tensor, version);
    if (exclusive) co_return std::make_shared<tensors::Store::Exclusive>(std::move(*exclusive));
    if (exclusive.error().code != tensors::TensorErrc::busy || steady_clock::now() >= give_up)
      co_return to_problem(exclusive.error(), {order.rank});
    boost::asio::steady_timer pause(parts_.control, std::chrono::milliseconds(1));
    co_await pause.async_wait(boost::asio::use_awaitable);
    if (auto const& why = preparing_.at(order.run)) co_return to_problem(*why, {});
  }
}

std::optional<Problem> Runner::refusal(RunOrder const& order, tensors::Tensor const* tensor) {
  auto const part = part_of(order);
  if (!part) return part.error();
  auto const dtype = tensor != nullptr ? tensor->dtype : order.admitted ? order.admitted->dtype : Dtype::u8;
  if (auto problem = check_reduction(order, dtype)) return problem;
  if (tensor != nullptr) {
    if (auto problem = check_admitted(order, *tensor)) return problem;
    auto const expected = part->brings ? part->input_elements : part->output_elements;
    if (tensor->elements() != expected)
      return mismatch(order, "/elements", std::to_string(expected) + " elements",
                      std::to_string(tensor->elements()) + " elements");
    if (part->overwrites() && tensor->elements() != part->output_elements)
      return invalid_field("/in_place", "the result of " + std::string(name(order.spec.op)) + " has " +
                                            std::to_string(part->output_elements) + " elements, the tensor " +
                                            std::to_string(tensor->elements()));
    if (part->overwrites() && order.result) return invalid_field("/in_place", "the result goes to another tensor");
  }
  if (!part->gets || part->overwrites()) return std::nullopt;
  if (order.spec.op != Op::barrier && !order.result &&
      (tensor == nullptr || tensor->elements() != part->output_elements))
    return invalid_field("/result", "is missing: the result has " + std::to_string(part->output_elements) +
                                        " elements, which is not the shape of the tensor");
  if (order.result) {
    auto const count = tensors::element_count(order.result->shape, dtype);
    if (!count) return invalid_field("/result/shape", count.error().detail);
    if (*count != part->output_elements)
      return invalid_field("/result/shape", "holds " + std::to_string(*count) + " elements, the result has " +
                                                std::to_string(part->output_elements));
  }
  return std::nullopt;
}

Checked<std::shared_ptr<plan::Program const>> Runner::find_program(RunOrder const& order) {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return invalid_field("/algorithm", algorithm.error().detail);
  auto program = parts_.plans.get(**algorithm, order.spec, order.rank);
  if (!program) return to_problem(program.error());
  return std::move(*program);
}

engine::RunSpec Runner::to_spec(RunOrder const& order, Memory const& memory) {
  engine::RunSpec spec;
  spec.run = order.run;
  spec.epoch = order.epoch;
  spec.token = order.token;
  spec.description = engine::describe(order.spec, memory.dtype, order.sizes, order.reduce);
  spec.fingerprint = engine::fingerprint(order.spec, memory.dtype, order.sizes, order.reduce);
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

awaitable<Checked<RunEnd>> Runner::run(RunOrder order) {
  Preparation preparation(*this, order.run);
  auto memory = co_await acquire(order);
  if (!memory) co_return memory.error();
  if (memory->level && memory->part.brings) {
    auto const combine = [level = memory->level] {
      level->combine();
      return std::string();
    };
    static_cast<void>(co_await parts_.helper.compute(combine));
  }
  auto spec = to_spec(order, *memory);

  RunEnd end;
  bool const digests = order.digests && order.spec.op != Op::barrier;
  bool const is_gone = memory->overwritten != nullptr;  // the input, afterwards
  if (digests && is_gone && memory->part.brings)
    end.input_digest = co_await digest_of(memory->owner(), memory->input());
  if (auto const& why = preparing_.at(order.run)) co_return to_problem(*why, {});
  preparation.end();
  end.started_us = microseconds(steady_clock::now());
  auto const pending = std::make_shared<Pending<engine::RunResult>>(parts_.control);
  parts_.plane.start(std::move(spec), [pending](engine::RunResult result) {
    Pending<engine::RunResult>::resolve(pending, std::move(result));
  });
  auto const result = co_await pending->take();

  end.seconds = result.seconds;
  end.wait_seconds = result.wait_seconds;
  end.bytes_sent = result.bytes_sent;
  end.bytes_received = result.bytes_received;
  end.steps = result.steps;
  if (result.status && memory->level && memory->part.gets) {
    auto const spread = [level = memory->level, block = memory->beside] {
      level->spread(block->bytes());
      return std::string();
    };
    static_cast<void>(co_await parts_.helper.compute(spread));
  } else if (result.status && averages_at_the_end(order) && memory->part.gets) {
    auto const output = memory->output();
    devices::find_divide(memory->dtype)(output.data(), output.size() / element_bytes(memory->dtype),
                                        static_cast<std::uint32_t>(order.contributions));
  }
  end.result = memory->result();
  if (!result.status) {
    end.problem = to_problem(result.status.error(), result.culprits);
    end.result.drop();
  } else if (digests) {
    if (!is_gone && memory->part.brings) end.input_digest = co_await digest_of(memory->owner(), memory->input());
    if (memory->part.gets) end.output_digest = co_await digest_of(memory->owner(), memory->output());
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
  run.bytes = memory.bytes();
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
  flight.dtype = name(memory.dtype);
  flight.elements = memory.bytes() / element_bytes(memory.dtype);
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
