// The part of the runner before a run: checks the plan and the tensors, and acquires memory.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/error_feedback.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/service/collectives/run_memory.hpp"
#include "worker/service/collectives/runner.hpp"
#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/operands/fused_adapter.hpp"
#include "worker/service/operands/multi_tensor_adapter.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/gpu_transfer.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

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
  if (!reduces(order.spec.op) || devices::can_reduce(order.reduce, dtype)) return std::nullopt;
  return Problem(ProblemCode::unsupported, "reduce " + std::string(name(order.reduce)) + " of " +
                                               std::string(name(dtype)) + " is not supported by this build");
}

bool brings_several(RunOrder const& order) { return order.parts > 0 || order.fused; }

// The damage of a block's region, if the block is in one.
std::optional<Problem> damage_of(tensors::Block const& block) {
  auto const* region = block.region();
  auto const why = region != nullptr ? region->damage() : std::nullopt;
  if (!why) return std::nullopt;
  return Problem(ProblemCode::region_damaged, "region " + region->name() + ": " + *why);
}

std::optional<engine::Carried> form_of(RunOrder const& order, Dtype dtype) {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return std::nullopt;
  return engine::Carried::of(order.compression, order.reduce, dtype, **algorithm, order.spec, order.sizes,
                             order.contributions);
}

std::optional<Problem> check_compression(RunOrder const& order, Dtype dtype) {
  if (order.error_feedback)
    if (auto const able = check_error_feedback(order.compression, brings_several(order)); !able)
      return invalid_field("/error_feedback", able.error().detail);
  if (!order.compression) return std::nullopt;
  if (order.contributions > 0)
    return invalid_field("/compression", "does not go with avg over several tensors of a worker; sum does");
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return invalid_field("/algorithm", algorithm.error().detail);
  auto const able = engine::check_compression(*order.compression, order.reduce, dtype, **algorithm, order.spec);
  if (!able) return invalid_field("/compression", able.error().detail);
  return std::nullopt;
}

}  // namespace

std::optional<Problem> RunMemory::damage() const {
  for (auto const& block : clients)
    if (auto problem = damage_of(*block)) return problem;
  return std::nullopt;
}

Checked<RunPart> Runner::part_of(RunOrder const& order) {
  auto program = find_program(order);
  if (!program) return program.error();
  if (auto const status = plan::check(**program, order.sizes); !status)
    return invalid_field(order.sizes.counts.empty() ? "/elements" : "/counts", status.error().detail);
  auto const layouts = plan::layouts(**program, order.sizes);
  RunPart part;
  part.input_elements = plan::input_elements(**program, layouts);
  part.output_elements = plan::output_elements(**program, layouts);
  auto const held = plan::holding(order.spec, order.rank, (*program)->chunks);
  bool const is_barrier = order.spec.op == Op::barrier;
  part.brings = !is_barrier && !held.input.empty();
  part.gets = !is_barrier && !held.output.empty();
  part.program = std::move(*program);
  return part;
}

awaitable<Checked<RunMemory>> Runner::acquire(RunOrder const& order) {
  auto memory = co_await acquire_narrow(order);
  if (!memory) co_return memory.error();
  if (memory->gpu != nullptr && engine::codes_between(order.compression, *memory->part.program))
    co_return invalid_field("/compression",
                            "codes between groups are of tensors in memory of the host, and this one lies on a GPU; "
                            "compression without 'between' is possible");
  auto const carried = co_await carry(order, *memory);
  if (!carried) co_return to_problem(carried.error(), {order.rank});
  co_return memory;
}

// Allocates memory for data that travels in another form.
awaitable<Status> Runner::carry(RunOrder const& order, RunMemory& memory) {
  memory.carried = form_of(order, memory.dtype);
  if (!memory.carried) co_return ok();
  bool const is_as_wide = memory.carried->is_as_wide();
  if (memory.part.gets && !is_as_wide) {
    auto block = co_await acquire_beside(memory.run_gpu(), memory.carried->bytes(memory.output().size()));
    if (!block) co_return block.error();
    memory.carried_output = std::move(*block);
  }
  if (memory.part.overwrites() && memory.part.brings) {
    memory.carried_input = memory.carried_output;  // none if scaled in place
  } else if (memory.part.brings && !memory.comes_carried) {
    auto block = co_await acquire_beside(memory.run_gpu(), memory.carried->bytes(memory.input().size()));
    if (!block) co_return block.error();
    memory.carried_input = std::move(*block);
  }
  if (!order.error_feedback || !memory.part.brings) co_return ok();
  auto block = co_await acquire_beside(nullptr, memory.input().size() / element_bytes(memory.dtype) * sizeof(float));
  if (!block) co_return block.error();
  auto residual = parts_.store.residuals().use(order.tensor, order.group, order.epoch, std::move(*block));
  if (!residual) co_return residual.error();
  memory.residual = std::move(*residual);
  co_return ok();
}

awaitable<Checked<RunMemory>> Runner::acquire_narrow(RunOrder const& order) {
  auto part = part_of(order);
  if (!part) co_return part.error();
  RunMemory memory;
  memory.part = std::move(*part);
  memory.dtype = order.admitted ? order.admitted->dtype : Dtype::u8;
  if (brings_several(order)) co_return co_await acquire_level(order, std::move(memory));
  if (order.result) memory.place = *order.result;
  std::optional<tensors::Tensor> tensor;
  if (memory.part.brings || memory.part.overwrites()) {
    auto found = parts_.store.get(order.tensor);
    if (!found) co_return to_problem(found.error(), {order.rank});
    if (auto problem = refusal(order, memory.part, &*found)) co_return std::move(*problem);
    memory.dtype = found->dtype;
    memory.unchanged_version = found->version;
    if (!order.result) memory.place = {found->name, found->shape, found->version};
    tensor = std::move(*found);
  } else if (auto problem = refusal(order, memory.part, nullptr)) {
    co_return std::move(*problem);
  }
  if (memory.part.overwrites()) {
    tensor->data.reset();
    auto overwritten = co_await overwrite(order, tensor->version);
    if (!overwritten) co_return overwritten.error();
    memory.overwritten = std::move(*overwritten);
    memory.gpu = memory.overwritten->tensor().data->gpu();
    memory.note(memory.overwritten->tensor().data);
    co_return memory;
  }
  auto const width = element_bytes(memory.dtype);
  if (memory.part.brings) {
    memory.note(tensor->data);
    memory.gpu = tensor->data->gpu();
    memory.source = tensor->data->bytes();
    memory.source_owner = std::move(tensor->data);
  } else if (order.spec.op == Op::barrier) {
    auto const arrived = std::make_shared<std::byte const>(std::byte{1});
    memory.source = {arrived.get(), 1};
    memory.source_owner = arrived;
  }
  // The destination of the result; on a rank that contributes nothing it is where the last version is.
  if (memory.part.gets && !memory.place.tensor.empty())
    if (auto const home = parts_.store.get(memory.place.tensor)) {
      memory.note(home->data);
      if (!memory.part.brings) memory.gpu = home->data->gpu();
    }
  auto block = co_await acquire_beside(memory.gpu, memory.part.output_elements * width);
  if (!block) co_return to_problem(block.error(), {order.rank});
  memory.beside = std::move(*block);
  co_return memory;
}

awaitable<Result<std::shared_ptr<tensors::Block>>> Runner::acquire_beside(devices::GpuUnit* gpu, std::uint64_t bytes) {
  if (gpu == nullptr) co_return co_await acquire_prepared(parts_.pool, parts_.helper, bytes);
  co_return co_await acquire_on_gpu(*gpu, bytes, parts_.helper);
}

Checked<std::shared_ptr<InputAdapter>> Runner::level_of(RunOrder const& order, RunPart const& part) {
  if (order.spec.in_place || order.result)
    return invalid_field(order.result ? "/result" : "/in_place",
                         "the results of several tensors are their next versions");
  std::shared_ptr<InputAdapter> level;
  if (order.fused) {
    level = std::make_shared<FusedAdapter>(order);
  } else {
    auto made = MultiTensorAdapter::make(order, parts_.store, parts_.nccl);
    if (!made) return made.error();
    level = std::move(*made);
  }
  if (auto problem = check_reduction(order, level->dtype())) return std::move(*problem);
  if (auto problem = check_compression(order, level->dtype())) return std::move(*problem);
  auto const elements = std::max(part.input_elements, part.output_elements);
  if (level->elements() != elements)
    return mismatch(order, "/elements", std::to_string(elements) + " elements",
                    std::to_string(level->elements()) + " elements");
  return level;
}

awaitable<Status> Runner::allocate(std::shared_ptr<InputAdapter> level, RunPart const& part) {
  auto const work = [level, &pool = parts_.pool, brings = part.brings, gets = part.gets] {
    return level->allocate(pool, brings, gets);
  };
  if (is_small(*level)) co_return work();
  co_return co_await parts_.helper.compute(work);
}

awaitable<Checked<RunMemory>> Runner::acquire_level(RunOrder const& order, RunMemory memory) {
  auto level = level_of(order, memory.part);
  if (!level) co_return level.error();
  memory.level = std::move(*level);
  memory.dtype = memory.level->dtype();
  memory.unchanged_version = memory.level->version();
  if (auto const form = form_of(order, memory.dtype); form && form->average())
    memory.comes_carried = memory.level->carry(*form->average());
  for (auto& block : memory.level->blocks()) memory.note(std::move(block));
  if (auto const status = co_await allocate(memory.level, memory.part); !status)
    co_return to_problem(status.error(), {order.rank});
  memory.gpu = memory.level->gpu();
  memory.source = memory.level->combined();
  memory.source_owner = memory.level;
  memory.beside = memory.level->destination();
  if (memory.beside) co_return memory;
  auto block = co_await acquire_beside(memory.gpu, memory.part.output_elements * element_bytes(memory.dtype));
  if (!block) co_return to_problem(block.error(), {order.rank});
  memory.beside = std::move(*block);
  co_return memory;
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

std::optional<Problem> Runner::refusal(RunOrder const& order) {
  auto const part = part_of(order);
  if (!part) return part.error();
  if (brings_several(order)) {
    auto const level = level_of(order, *part);
    if (!level) return level.error();
    for (auto const& block : (*level)->blocks())
      if (auto problem = damage_of(*block)) return problem;
    // Other portions come later, but a call that cannot complete must not begin.
    if (order.fused)
      for (auto const& tensor : order.fused->tensors())
        if (auto problem = damage_of(*tensor.data)) return problem;
    return std::nullopt;
  }
  if (!part->brings && !part->overwrites()) return refusal(order, *part, nullptr);
  auto const tensor = parts_.store.get(order.tensor);
  if (!tensor) return to_problem(tensor.error(), {order.rank});
  if (auto problem = damage_of(*tensor->data)) return problem;
  return refusal(order, *part, &*tensor);
}

std::optional<Problem> Runner::refusal(RunOrder const& order, RunPart const& part, tensors::Tensor const* tensor) {
  auto const dtype = tensor != nullptr ? tensor->dtype : order.admitted ? order.admitted->dtype : Dtype::u8;
  if (auto problem = check_reduction(order, dtype)) return problem;
  if (auto problem = check_compression(order, dtype)) return problem;
  if (tensor != nullptr) {
    if (auto problem = check_admitted(order, *tensor)) return problem;
    auto const expected = part.brings ? part.input_elements : part.output_elements;
    if (tensor->elements() != expected)
      return mismatch(order, "/elements", std::to_string(expected) + " elements",
                      std::to_string(tensor->elements()) + " elements");
    if (part.overwrites() && tensor->elements() != part.output_elements)
      return invalid_field("/in_place", "the result of " + std::string(name(order.spec.op)) + " has " +
                                            std::to_string(part.output_elements) + " elements, the tensor " +
                                            std::to_string(tensor->elements()));
    if (part.overwrites() && order.result) return invalid_field("/in_place", "the result goes to another tensor");
  }
  if (!part.gets || part.overwrites()) return std::nullopt;
  if (order.spec.op != Op::barrier && !order.result &&
      (tensor == nullptr || tensor->elements() != part.output_elements))
    return invalid_field("/result", "is missing: the result has " + std::to_string(part.output_elements) +
                                        " elements, which is not the shape of the tensor");
  if (order.result) {
    auto const count = tensors::element_count(order.result->shape, dtype);
    if (!count) return invalid_field("/result/shape", count.error().detail);
    if (*count != part.output_elements)
      return invalid_field("/result/shape", "holds " + std::to_string(*count) + " elements, the result has " +
                                                std::to_string(part.output_elements));
    return check_home(order, dtype);
  }
  return std::nullopt;
}

// A tensor in a client's region keeps its dtype and shape, which the client knows: only the client may change them.
std::optional<Problem> Runner::check_home(RunOrder const& order, Dtype dtype) const {
  auto const& result = *order.result;
  auto const now = parts_.store.get(result.tensor);
  if (!now || now->data->region() == nullptr) return std::nullopt;
  if (now->dtype == dtype && now->shape == result.shape) return damage_of(*now->data);
  auto const form = [](Dtype type, tensors::Shape const& shape) {
    return std::string(name(type)) + "[" + tensors::to_string(shape) + "]";
  };
  return invalid_field(result.tensor == order.tensor ? "/tensor" : "/output",
                       result.tensor + " lies in region " + now->data->region()->name() + " as " +
                           form(now->dtype, now->shape) + ", the result is " + form(dtype, result.shape) +
                           ": name another output");
}

Checked<std::shared_ptr<plan::Program const>> Runner::find_program(RunOrder const& order) {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return invalid_field("/algorithm", algorithm.error().detail);
  auto program = parts_.plans.get(**algorithm, order.spec, order.rank);
  if (!program) {
    auto problem = to_problem(program.error());
    problem.errors.push_back({"/algorithm", program.error().detail});
    return problem;
  }
  return std::move(*program);
}

}  // namespace chorus::service
