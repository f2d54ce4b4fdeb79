// Shards on a GPU: values and optimizer's state. Pushes are copied to the GPU through pinned memory, and steps run
// there. Readers get a copy in host memory, made once for each version. Pushes that wait for their round wait in host
// memory.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

Result<devices::GpuUnit*> ShardMemory::roomiest_gpu() const {
  using devices::GpuErrc;
  if (gpus == nullptr || gpus->size() == 0)
    return Error(GpuErrc::unavailable, gpus == nullptr ? "this worker uses no GPU" : gpus->why_none());
  devices::GpuUnit* roomiest = nullptr;
  std::uint64_t most = 0;
  auto why_not = Error(GpuErrc::lost, "");
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    auto& unit = (*gpus)[i];
    if (auto const lost = unit.lost()) {
      why_not.detail = *lost;
      continue;
    }
    std::uint64_t room = 0;
    if (auto const arena = unit.arena_if_any()) {
      room = arena->bytes().size() - arena->used_bytes();
    } else {
      // The arena takes half of the free memory by default.
      auto const free = unit.gpu().free_bytes();
      if (free) room = *free / 2;
    }
    if (roomiest != nullptr && room <= most) continue;
    roomiest = &unit;
    most = room;
  }
  if (roomiest == nullptr) return why_not;
  return roomiest;
}

http::Problem why_not_made(Error const& error) {
  auto const is_missing = error.code == devices::GpuErrc::unavailable || error.code == devices::GpuErrc::lost;
  return {is_missing ? http::ProblemCode::unsupported : http::ProblemCode::unavailable, error.detail};
}

Result<std::shared_ptr<tensors::Block>> Shard::download() const {
  auto block = pool_.acquire(spec_.bytes());
  if (!block) return block.error();
  if (auto const read = gpu_->read("values", (*block)->bytes()); !read) return read.error();
  return std::move(*block);
}

Status Shard::prepare_gpu_values(Change& change) {
  change.bytes_ = spec_.bytes();
  change.is_in_place_ = values_ == nullptr;
  // The pushed block becomes the copy for readers.
  change.begin_ = [this, data = change.push_.data] { return gpu_->adopt(data->bytes()); };
  return ok();
}

Status Shard::prepare_gpu_step(Change& change, std::vector<Push> gradients) {
  auto slots = gpu_->reserve();
  if (!slots) return slots.error();
  change.is_on_gpu_ = true;
  // Meanwhile readers get the copy of the version before, if there is one.
  change.is_in_place_ = values_ == nullptr;
  auto const& first = gradients.front();
  if (first.kind == PushKind::rows) {
    for (auto const& push : gradients) change.bytes_ += 2 * push.data->size_bytes();
    change.begin_ = [this, gradients = std::move(gradients), held = std::move(*slots)] {
      return step_rows_on_gpu(gradients, held);
    };
    return ok();
  }
  change.bytes_ = spec_.bytes() * (2 + gradients.size());
  // The norm of a sum is computed on the host, which determines the order of adding squares.
  std::shared_ptr<tensors::Block> sum;
  if (optimizer_.wants_norm() && (gradients.size() > 1 || clocks_.in_rounds())) {
    auto acquired = pool_.acquire(first.data->size_bytes());
    if (!acquired) return acquired.error();
    sum = std::move(*acquired);
  }
  change.begin_ = [this, gradients = std::move(gradients), sum = std::move(sum), held = std::move(*slots)] {
    return step_on_gpu(gradients, sum, held);
  };
  return ok();
}

Status Shard::step_on_gpu(std::vector<Push> const& gradients, std::shared_ptr<tensors::Block> const& sum,
                          std::shared_ptr<GpuElements::Slots> const& slots) {
  std::vector<Gradient> all;
  for (auto const& push : gradients) all.push_back(gradient_of(push));
  std::optional<double> norm;
  if (sum) {
    sum_gradients(gradients, spec_.averages, 0, sum->bytes());
    all.assign(1, {sum->bytes(), gradients.front().dtype});
  } else {
    norm = gradients.front().norm;
  }
  if (optimizer_.wants_norm() && !norm) norm = std::sqrt(squared_norm(all.front()));
  return gpu_->step(optimizer_, optimizer_.begin_step(norm), all, spec_.averages && !sum, slots);
}

Status Shard::step_rows_on_gpu(std::vector<Push> const& gradients, std::shared_ptr<GpuElements::Slots> const& slots) {
  MergedRows merged;
  auto const gradient = merge(gradients, merged);
  if (merged.rows.empty()) return ok();
  auto norm = gradients.size() == 1 ? gradients.front().norm : std::nullopt;
  if (optimizer_.wants_norm() && !norm) norm = std::sqrt(squared_norm(gradient));
  return gpu_->step_rows(optimizer_, merged.rows, spec_.row_elements, gradient, norm, slots);
}

Status Shard::add_gpu_arrays(ShardImage& image) const {
  for (auto const& array : gpu_->arrays()) {
    auto block = values_;
    if (array.name != "values" || !block) {
      auto acquired = pool_.acquire(array.bytes);
      if (!acquired) return acquired.error();
      block = std::move(*acquired);
      if (auto const read = gpu_->read(array.name, block->bytes()); !read) return read;
    }
    auto const bytes = std::as_const(*block).bytes();
    image.arrays.push_back({std::string(array.name), array.dtype, 1, {std::move(block), bytes}});
  }
  return ok();
}

// Returns host memory for the array until settle(); an empty span if the array is not on the GPU.
std::span<std::byte> Shard::gpu_place_for(std::string_view array) {
  for (auto const& own : gpu_->arrays()) {
    if (own.name != array) continue;
    auto& block = arriving_arrays_[std::string(array)];
    if (!block) {
      auto acquired = pool_.acquire(own.bytes);
      if (!acquired) return {};
      block = std::move(*acquired);
    }
    return block->bytes();
  }
  return {};
}

Status Shard::settle() {
  for (auto const& [array, content] : arriving_arrays_)
    if (auto const written = gpu_->write(array, content->bytes()); !written) return written;
  if (arriving_arrays_.contains("values")) values_ = nullptr;
  arriving_arrays_.clear();
  return ok();
}

}  // namespace chorus::parameters
