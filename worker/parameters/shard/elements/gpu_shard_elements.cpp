#include "worker/parameters/shard/elements/gpu_shard_elements.hpp"

#include <cmath>

namespace chorus::parameters {

Result<std::shared_ptr<tensors::Block>> GpuShardElements::download() const {
  auto block = pool_.acquire(spec_.bytes());
  if (!block) return block.error();
  if (auto const read = gpu_->read("values", (*block)->bytes()); !read) return read.error();
  return std::move(*block);
}

// The pushed block becomes the copy for readers.
Status GpuShardElements::prepare_values(ElementsChange& change, std::shared_ptr<tensors::Block const> data) {
  change.bytes = spec_.bytes();
  change.is_in_place = values_ == nullptr;
  change.is_new = true;
  change.values = std::const_pointer_cast<tensors::Block>(data);
  change.begin = [this, data = std::move(data)] { return gpu_->adopt(data->bytes()); };
  return ok();
}

Status GpuShardElements::prepare_step(ElementsChange& change, std::vector<Push> gradients) {
  auto slots = gpu_->reserve();
  if (!slots) return slots.error();
  change.is_new = true;
  // Meanwhile readers get the copy of the version before, if there is one.
  change.is_in_place = values_ == nullptr;
  auto const& first = gradients.front();
  if (first.kind == PushKind::rows) {
    for (auto const& push : gradients) change.bytes += 2 * push.data->size_bytes();
    change.begin = [this, gradients = std::move(gradients), held = std::move(*slots)] {
      return step_rows(gradients, held);
    };
    return ok();
  }
  change.bytes = spec_.bytes() * (2 + gradients.size());
  // The norm of a sum is computed on the host, which determines the order of adding squares.
  std::shared_ptr<tensors::Block> sum;
  if (optimizer_.wants_norm() && sums(gradients)) {
    auto acquired = pool_.acquire(first.data->size_bytes());
    if (!acquired) return acquired.error();
    sum = std::move(*acquired);
  }
  change.begin = [this, gradients = std::move(gradients), sum = std::move(sum), held = std::move(*slots)] {
    return step(gradients, sum, held);
  };
  return ok();
}

Status GpuShardElements::step(std::vector<Push> const& gradients, std::shared_ptr<tensors::Block> const& sum,
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

Status GpuShardElements::step_rows(std::vector<Push> const& gradients,
                                   std::shared_ptr<GpuElements::Slots> const& slots) {
  MergedRows merged;
  auto const gradient = merge(gradients, merged);
  if (merged.rows.empty()) return ok();
  auto norm = gradients.size() == 1 ? gradients.front().norm : std::nullopt;
  if (optimizer_.wants_norm() && !norm) norm = std::sqrt(squared_norm(gradient));
  return gpu_->step_rows(optimizer_, merged.rows, spec_.row_elements, gradient, norm, slots);
}

Status GpuShardElements::add_arrays(std::vector<ShardImage::Array>& arrays) {
  for (auto const& array : gpu_->arrays()) {
    auto block = values_;
    if (array.name != "values" || !block) {
      auto acquired = pool_.acquire(array.bytes);
      if (!acquired) return acquired.error();
      block = std::move(*acquired);
      if (auto const read = gpu_->read(array.name, block->bytes()); !read) return read;
    }
    auto const bytes = std::as_const(*block).bytes();
    arrays.push_back({std::string(array.name), array.dtype, 1, {std::move(block), bytes}});
  }
  for (auto const& array : optimizer_.state())
    if (auto added = add_copy(arrays, array, array.bytes, array.elements_each); !added) return added;
  return ok();
}

std::optional<std::span<std::byte>> GpuShardElements::place_for(std::string_view array) {
  for (auto const& own : gpu_->arrays()) {
    if (own.name != array) continue;
    auto& block = arriving_[std::string(array)];
    if (!block) {
      auto acquired = pool_.acquire(own.bytes);
      if (!acquired) return std::nullopt;
      block = std::move(*acquired);
    }
    return block->bytes();
  }
  return Elements::place_for(array);
}

Status GpuShardElements::settle() {
  for (auto const& [array, content] : arriving_)
    if (auto const written = gpu_->write(array, content->bytes()); !written) return written;
  if (arriving_.contains("values")) values_ = nullptr;
  arriving_.clear();
  return ok();
}

}  // namespace chorus::parameters
