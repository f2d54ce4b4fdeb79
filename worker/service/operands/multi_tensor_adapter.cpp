#include "worker/service/operands/multi_tensor_adapter.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/together.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using engine::LocalBuffers;
using http::Checked;
using http::Problem;
using http::ProblemCode;

std::string names_for(Op op) {
  std::string names;
  for (auto const* algorithm : algorithms::all_for(op)) names.append(names.empty() ? "" : ", ").append(algorithm->name);
  return names;
}

bool does(std::string const& algorithm, Op op) {
  auto const found = algorithms::find(algorithm);
  return found && (*found)->check({.op = op, .algorithm = algorithm, .ranks = 2}).has_value();
}

std::optional<Problem> compare(RunOrder const& order, tensors::Tensor const& first, tensors::Tensor const& other) {
  if (first.dtype == other.dtype && first.shape == other.shape) return std::nullopt;
  auto const what = [](tensors::Tensor const& tensor) {
    return tensor.name + " is " + std::string(name(tensor.dtype)) + "[" + tensors::to_string(tensor.shape) + "]";
  };
  Problem problem(ProblemCode::mismatch, what(other) + ", " + what(first));
  problem.ranks = {order.rank};
  return problem;
}

// True if no part is a client's GPU memory, which only the GPU that it was mapped for can see.
bool is_all_ours(std::span<tensors::Tensor const> parts) {
  return std::ranges::all_of(
      parts, [](auto const& part) { return part.data->gpu() == nullptr || part.data->region() == nullptr; });
}

// The GPUs with parts, beginning with `first`.
std::vector<devices::GpuUnit*> units_of(std::vector<tensors::Tensor> const& parts, devices::GpuUnit* first) {
  std::vector<devices::GpuUnit*> units{first};
  for (auto const& part : parts)
    if (auto* const unit = part.data->gpu(); unit != nullptr && std::ranges::find(units, unit) == units.end())
      units.push_back(unit);
  return units;
}

}  // namespace

std::string part_name(std::string const& tensor, std::uint32_t part) { return tensor + "/" + std::to_string(part); }

MultiTensorAdapter::MultiTensorAdapter(RunOrder const& order, std::vector<tensors::Tensor> parts,
                                       devices::NcclTeams* nccl)
    : op_(order.spec.op),
      reduce_(order.reduce),
      algorithm_(order.local_algorithm),
      any_order_(order.any_order),
      parts_(std::move(parts)),
      nccl_(nccl) {
  for (auto const& part : parts_) version_ += part.version;
  gpu_ = parts_.front().data->gpu();
  if (!reduces(op_)) return;
  for (auto const& part : parts_)
    if (gpu_ == nullptr) gpu_ = part.data->gpu();
}

Checked<std::shared_ptr<MultiTensorAdapter>> MultiTensorAdapter::make(RunOrder const& order,
                                                                      tensors::Store const& store,
                                                                      devices::NcclTeams* nccl) {
  if (order.parts > max_parts)
    return invalid_field("/parts", "is " + std::to_string(order.parts) + ", expected at most 64");
  if (order.spec.op != Op::all_reduce && order.spec.op != Op::reduce && order.spec.op != Op::broadcast) {
    Problem problem(ProblemCode::unsupported,
                    std::string(name(order.spec.op)) +
                        " takes one tensor per worker; all_reduce, reduce and broadcast take several of one name");
    problem.errors.push_back({"/tensor", "is " + part_name(order.tensor, 0) + " and so on"});
    return problem;
  }
  std::vector<tensors::Tensor> parts;
  for (std::uint32_t part = 0; part < order.parts; ++part) {
    auto tensor = store.get(part_name(order.tensor, part));
    if (!tensor) return to_problem(tensor.error(), {order.rank});
    if (!parts.empty())
      if (auto problem = compare(order, parts.front(), *tensor)) return std::move(*problem);
    parts.push_back(std::move(*tensor));
  }
  std::shared_ptr<MultiTensorAdapter> level(new MultiTensorAdapter(order, std::move(parts), nccl));
  if (order.admitted && order.admitted->version != level->version_)
    return Problem(ProblemCode::mismatch, "the parts of " + order.tensor + " have changed since they were admitted");

  bool const reduces_here = reduces(order.spec.op);
  if (!does(level->algorithm_, reduces_here ? Op::reduce : Op::broadcast))
    return invalid_field("/local_algorithm", "'" + level->algorithm_.substr(0, 64) + "' is none for this; " +
                                                 names_for(reduces_here ? Op::reduce : Op::broadcast) + " are");
  if (reduces_here) {
    auto reduction = level->plan(Op::reduce);
    if (!reduction) return reduction.error();
    level->reduction_ = std::move(*reduction);
  }
  auto distribution = level->plan(Op::broadcast);
  if (!distribution) return distribution.error();
  level->distribution_ = std::move(*distribution);
  return level;
}

std::vector<std::shared_ptr<tensors::Block const>> MultiTensorAdapter::blocks() const {
  std::vector<std::shared_ptr<tensors::Block const>> blocks;
  for (auto const& part : parts_) blocks.push_back(part.data);
  return blocks;
}

// Empty for small parts: one GPU sums them before several have begun.
std::vector<devices::GpuUnit*> MultiTensorAdapter::units_for_nccl() const {
  if (nccl_ == nullptr || parts_.size() < 2 || !is_all_ours(parts_)) return {};
  if (parts_.front().data->size_bytes() < devices::together_bytes_min) return {};
  std::vector<devices::GpuUnit*> units;
  for (auto const& part : parts_) {
    auto* const unit = part.data->gpu();
    if (unit == nullptr || std::ranges::find(units, unit) != units.end()) return {};
    units.push_back(unit);
  }
  return units;
}

// Allocates memory on gpu_ for the parts that it does not see.
Status MultiTensorAdapter::stage() {
  if (!staged_.empty()) return ok();
  std::vector<std::shared_ptr<tensors::Block>> blocks;
  for (auto const& part : parts_) {
    blocks.emplace_back();
    auto* const unit = part.data->gpu();
    if (unit == gpu_ || (unit != nullptr && is_all_ours({&part, 1}) && gpu_->sees(*unit))) continue;
    auto staged = tensors::acquire_on(*gpu_, part.data->size_bytes());
    if (!staged) return staged.error();
    blocks.back() = std::move(*staged);
  }
  staged_ = std::move(blocks);
  return ok();
}

bool MultiTensorAdapter::sums_on_gpu() const { return (carried_ ? carried_->place(gpu_) : gpu_) != nullptr; }

Status MultiTensorAdapter::allocate_combined(tensors::Pool& pool) {
  auto const bytes = parts_.front().data->size_bytes();
  auto block = tensors::acquire(pool, sums_on_gpu() ? gpu_ : nullptr, carried_ ? carried_->bytes(bytes) : bytes);
  if (!block) return block.error();
  combined_ = std::move(*block);
  sums_by_nccl_ = (!carried_ || carried_->is_as_wide()) && !nccl_units_.empty() && any_order_ &&
                  devices::NcclTeams::has(sums(), dtype()) && nccl_->ready(nccl_units_);
  if (sums_on_gpu() && !sums_by_nccl_) return stage();
  if (!carried_ || (carried_->is_as_wide() && !sums_by_nccl_)) return ok();
  for (auto const& part : parts_) {
    auto wide = tensors::acquire(pool, sums_by_nccl_ ? part.data->gpu() : nullptr, carried_->bytes(bytes));
    if (!wide) return wide.error();
    wide_.push_back(std::move(*wide));
  }
  return ok();
}

Status MultiTensorAdapter::allocate(tensors::Pool& pool, bool brings, bool gets) {
  if (gpu_ != nullptr) {
    team_ = units_of(parts_, gpu_);
    if (!is_all_ours(parts_) || !devices::see_each_other(team_)) team_ = {gpu_};
    nccl_units_ = units_for_nccl();
  }
  if (brings && !reduction_.empty()) {
    if (auto const allocated = allocate_combined(pool); !allocated) return allocated;
  }
  if (!gets) return ok();
  for (auto const& part : parts_) {
    auto block = tensors::acquire(pool, part.data->gpu(), part.data->size_bytes());
    if (!block) return block.error();
    results_.push_back(std::move(*block));
  }
  return ok();
}

// If the algorithm does not do the operation, as ring does no broadcast, centralized does.
Checked<std::vector<plan::Program>> MultiTensorAdapter::plan(Op op) const {
  auto const& name = does(algorithm_, op) ? algorithm_ : std::string("centralized");
  auto const algorithm = algorithms::find(name);
  if (!algorithm) return invalid_field("/local_algorithm", algorithm.error().detail);
  plan::Spec const spec{.op = op, .algorithm = name, .ranks = static_cast<std::uint32_t>(parts_.size())};
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto program = plan::build(**algorithm, spec, rank);
    if (!program) return to_problem(program.error());
    programs.push_back(std::move(*program));
  }
  return programs;
}

ReduceOp MultiTensorAdapter::sums() const { return reduce_ == ReduceOp::avg ? ReduceOp::sum : reduce_; }

Status MultiTensorAdapter::combine_by_nccl() {
  std::vector<devices::Placed> sources;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    auto const& block = parts_[part].data;
    if (carried_)
      if (auto const scaled = carried_->widen(wide_[part]->bytes(), block->bytes(), block->gpu()); !scaled)
        return scaled;
    // NCCL only reads the sources.
    sources.push_back({block->gpu(), carried_ ? wide_[part]->data() : const_cast<std::byte*>(block->data())});
  }
  return nccl_->reduce(sums(), dtype(), sources, {gpu_, combined_->data()}, elements());
}

Status MultiTensorAdapter::combine_on_gpu() {
  if (sums_by_nccl_) {
    auto const summed = combine_by_nccl();
    if (summed || summed.error().code != devices::GpuErrc::unavailable) return summed;
    // NCCL was given up, or is making communicators for other GPUs.
    if (auto const staged = stage(); !staged) return staged;
  }
  std::vector<devices::Placed> sources;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    auto const& block = parts_[part].data;
    auto const& staged = staged_[part];
    if (staged != nullptr)
      if (auto const copied = tensors::copy(*block, *staged); !copied) return copied;
    auto* const data = staged != nullptr ? staged->data() : const_cast<std::byte*>(block->data());
    sources.push_back({staged != nullptr ? gpu_ : block->gpu(), data});
  }
  bool const is_small = combined_->size_bytes() < devices::together_bytes_min;
  auto const team = std::span(team_).first(is_small ? 1 : team_.size());
  devices::Placed const result{gpu_, combined_->data()};
  if (!carried_) return devices::fold_together(team, sums(), dtype(), sources, result, elements());
  std::vector<float> const weights(sources.size(), carried_->weight());
  return devices::fold_together(team, ReduceOp::avg, dtype(), sources, result, elements(),
                                carried_->widening(weights.data()));
}

Status MultiTensorAdapter::combine_on_host() {
  if (carried_ && parts_.size() == 1)
    return carried_->widen(combined_->bytes(), parts_.front().data->bytes(), parts_.front().data->gpu());
  bool const widens = carried_ && !carried_->is_as_wide();
  std::vector<LocalBuffers> buffers;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    auto const& data = parts_[part].data;
    if (widens)
      if (auto const widened = carried_->widen(wide_[part]->bytes(), data->bytes(), data->gpu()); !widened)
        return widened;
    buffers.push_back({widens ? std::span<std::byte const>(wide_[part]->bytes()) : data->bytes(), {}});
  }
  buffers.front().output = combined_->bytes();
  plan::Sizes const sizes{elements(), {}, {}};
  if (widens)
    engine::run_local_collective(reduction_, carried_->dtype(), sums(), carried_->sizes(sizes), buffers);
  else if (carried_)
    engine::run_local_collective(reduction_, dtype(), ReduceOp::avg, sizes, buffers,
                                 engine::Average{.scale = 1 / carried_->weight()});
  else
    engine::run_local_collective(reduction_, dtype(), sums(), sizes, buffers);
  return ok();
}

Status MultiTensorAdapter::combine() {
  if (reduction_.empty()) return ok();
  return sums_on_gpu() ? combine_on_gpu() : combine_on_host();
}

std::span<std::byte const> MultiTensorAdapter::combined() const {
  return combined_ ? std::span<std::byte const>(combined_->bytes()) : parts_.front().data->bytes();
}

Status MultiTensorAdapter::spread(std::span<std::byte> result) {
  bool const is_of_gpus = std::ranges::any_of(results_, [](auto const& block) { return block->gpu() != nullptr; });
  if (is_of_gpus) return spread_on_gpus(result);
  std::vector<LocalBuffers> buffers;
  for (auto const& block : results_) buffers.push_back({{}, block->bytes()});
  buffers.front().input = result;
  engine::run_local_collective(distribution_, dtype(), reduce_, {elements(), {}, {}}, buffers);
  return ok();
}

Status MultiTensorAdapter::spread_on_gpus(std::span<std::byte> result) {
  std::vector<devices::Placed> together;
  if (!nccl_units_.empty() && nccl_->ready(nccl_units_)) {
    for (auto const& block : results_) together.push_back({block->gpu(), block->data()});
    auto const copied = nccl_->broadcast({gpu_, result.data()}, together, result.size());
    if (copied || copied.error().code != devices::GpuErrc::unavailable) return copied;
    together.clear();
  }
  for (auto const& block : results_) {
    bool const is_of_team = gpu_ != nullptr && std::ranges::find(team_, block->gpu()) != team_.end();
    if (is_of_team)
      together.push_back({block->gpu(), block->data()});
    else if (auto const copied = tensors::copy(result, gpu_, *block); !copied)
      return copied;
  }
  return together.empty() ? ok() : devices::spread_together({gpu_, result.data()}, together, result.size());
}

HeldResult MultiTensorAdapter::results() const {
  std::vector<tensors::Store::NewVersion> versions;
  for (std::size_t part = 0; part < parts_.size(); ++part)
    versions.push_back(
        {parts_[part].name, parts_[part].dtype, parts_[part].shape, results_[part], parts_[part].version});
  return HeldResult(std::move(versions));
}

}  // namespace chorus::service
