#include "worker/service/collectives/runs/memory_acquisition.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/gpu_transfer.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using std::chrono::steady_clock;

// How long an in-place run waits for readers of its tensor to finish.
constexpr std::chrono::seconds patience_with_readers{1};

std::optional<engine::Carried> form_of(RunOrder const& order, Dtype dtype) {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return std::nullopt;
  return engine::Carried::of(order.compression, order.reduce, dtype, **algorithm, order.spec, order.sizes,
                             order.contributions);
}

}  // namespace

awaitable<Checked<RunMemory>> MemoryAcquisition::acquire(RunOrder const& order, std::optional<Error> const& aborted) {
  auto memory = co_await acquire_narrow(order, aborted);
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
awaitable<Status> MemoryAcquisition::carry(RunOrder const& order, RunMemory& memory) {
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
  auto residual = store_.residuals().use(order.tensor, order.group, order.epoch, std::move(*block));
  if (!residual) co_return residual.error();
  memory.residual = std::move(*residual);
  co_return ok();
}

awaitable<Checked<RunMemory>> MemoryAcquisition::acquire_narrow(RunOrder const& order,
                                                                std::optional<Error> const& aborted) {
  auto part = checks_.part_of(order);
  if (!part) co_return part.error();
  RunMemory memory;
  memory.part = std::move(*part);
  memory.dtype = order.admitted ? order.admitted->dtype : Dtype::u8;
  if (order.brings_several()) co_return co_await acquire_level(order, std::move(memory));
  if (order.result) memory.place = *order.result;
  std::optional<tensors::Tensor> tensor;
  if (memory.part.brings || memory.part.overwrites()) {
    auto found = store_.get(order.tensor);
    if (!found) co_return to_problem(found.error(), {order.rank});
    if (auto problem = checks_.refusal(order, memory.part, &*found)) co_return std::move(*problem);
    memory.dtype = found->dtype;
    memory.unchanged_version = found->version;
    if (!order.result) memory.place = {found->name, found->shape, found->version};
    tensor = std::move(*found);
  } else if (auto problem = checks_.refusal(order, memory.part, nullptr)) {
    co_return std::move(*problem);
  }
  if (memory.part.overwrites()) {
    tensor->data.reset();
    auto overwritten = co_await overwrite(order, tensor->version, aborted);
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
    if (auto const home = store_.get(memory.place.tensor)) {
      memory.note(home->data);
      if (!memory.part.brings) memory.gpu = home->data->gpu();
    }
  auto block = co_await acquire_beside(memory.gpu, memory.part.output_elements * width);
  if (!block) co_return to_problem(block.error(), {order.rank});
  memory.beside = std::move(*block);
  co_return memory;
}

awaitable<Result<std::shared_ptr<tensors::Block>>> MemoryAcquisition::acquire_beside(devices::GpuUnit* gpu,
                                                                                     std::uint64_t bytes) {
  if (gpu == nullptr) co_return co_await acquire_prepared(pool_, helper_, bytes);
  co_return co_await acquire_on_gpu(*gpu, bytes, helper_);
}

awaitable<Status> MemoryAcquisition::allocate(std::shared_ptr<InputAdapter> level, RunPart const& part) {
  auto const work = [level, &pool = pool_, brings = part.brings, gets = part.gets] {
    return level->allocate(pool, brings, gets);
  };
  if (is_small(*level)) co_return work();
  co_return co_await helper_.compute(work);
}

awaitable<Checked<RunMemory>> MemoryAcquisition::acquire_level(RunOrder const& order, RunMemory memory) {
  auto level = checks_.level_of(order, memory.part);
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

awaitable<Checked<std::shared_ptr<tensors::Store::Exclusive>>> MemoryAcquisition::overwrite(
    RunOrder const& order, std::uint64_t version, std::optional<Error> const& aborted) {
  auto const give_up = std::min(order.deadline, steady_clock::now() + patience_with_readers);
  for (;;) {
    auto exclusive = store_.lock(order.tensor, version);
    if (exclusive) co_return std::make_shared<tensors::Store::Exclusive>(std::move(*exclusive));
    if (exclusive.error().code != tensors::TensorErrc::busy || steady_clock::now() >= give_up)
      co_return to_problem(exclusive.error(), {order.rank});
    boost::asio::steady_timer pause(control_, std::chrono::milliseconds(1));
    co_await pause.async_wait(boost::asio::use_awaitable);
    if (aborted) co_return to_problem(*aborted, {});
  }
}

}  // namespace chorus::service
