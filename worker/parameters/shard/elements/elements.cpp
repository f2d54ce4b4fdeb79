#include "worker/parameters/shard/elements/elements.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/initializer.hpp"
#include "worker/parameters/shard/elements/dense_elements.hpp"
#include "worker/parameters/shard/elements/gpu_shard_elements.hpp"
#include "worker/parameters/shard/elements/lazy_elements.hpp"

namespace chorus::parameters {
namespace {

void initialize(std::span<std::byte> values, ShardSpec const& spec, Initializer const& initializer) {
  auto const width = spec.initial_row_elements;
  auto const size = element_bytes(spec.dtype);
  for (auto at = spec.begin; at < spec.end;) {
    auto const column = at % width;
    auto const count = std::min(width - column, spec.end - at);
    initializer.fill(at / width, values.subspan((at - spec.begin) * size, count * size), column);
    at += count;
  }
}

}  // namespace

Result<std::unique_ptr<Elements>> Elements::make(ShardSpec const& spec, ShardMemory memory, Content content) {
  auto const initializer = Initializer::make(spec.initializer, spec.dtype);
  if (!initializer) return initializer.error();
  auto const is_lazy = spec.lazy_rows.has_value();
  auto optimizer = Optimizer::make(spec.optimizer, spec.dtype, is_lazy ? 0 : spec.elements(), spec.row_elements,
                                   spec.on_gpu ? Optimizer::State::elsewhere : Optimizer::State::here);
  if (!optimizer) return optimizer.error();
  std::unique_ptr<GpuElements> on_gpu;
  if (spec.on_gpu) {
    auto const unit = memory.roomiest_gpu();
    if (!unit) return unit.error();
    auto made = GpuElements::make(**unit, *optimizer);
    if (!made) return made.error();
    on_gpu = std::move(*made);
  }
  auto values = memory.pool.acquire(is_lazy || (on_gpu && content == Content::to_come) ? 0 : spec.bytes());
  if (!values) return values.error();
  if (is_lazy)
    return std::make_unique<LazyElements>(spec, memory.pool, std::move(*optimizer), *initializer, std::move(*values));
  if (content == Content::initial) initialize((*values)->bytes(), spec, *initializer);
  if (!on_gpu) return std::make_unique<DenseElements>(spec, memory.pool, std::move(*optimizer), std::move(*values));
  if (content == Content::to_come) *values = nullptr;
  if (*values)
    if (auto const adopted = on_gpu->adopt((*values)->bytes()); !adopted) return adopted.error();
  return std::make_unique<GpuShardElements>(spec, memory.pool, std::move(*optimizer), std::move(on_gpu),
                                            std::move(*values));
}

Result<std::shared_ptr<tensors::Block>> Elements::download() const {
  CHORUS_ASSERT(false, "only elements on a GPU are downloaded");
  return std::shared_ptr<tensors::Block>();
}

void Elements::copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const {
  auto const row_bytes = spec_.row_bytes();
  if (row_bytes == 0) return;
  for (auto const row : rows) {
    std::memcpy(into.data(), values_->data() + (row - spec_.rows().begin) * row_bytes, row_bytes);
    into = into.subspan(row_bytes);
  }
}

Status Elements::add_copy(std::vector<ShardImage::Array>& arrays, StateArray const& array,
                          std::span<std::byte const> content, std::uint64_t elements_each) const {
  auto acquired = pool_.acquire(content.size());
  if (!acquired) return acquired.error();
  std::shared_ptr<tensors::Block> const block = std::move(*acquired);
  if (!content.empty()) std::memcpy(block->data(), content.data(), content.size());
  arrays.push_back({std::string(array.name), array.dtype, elements_each, {block, block->bytes()}});
  return ok();
}

Gradient Elements::merge(std::span<Push const> pushes, MergedRows& merged) const {
  auto const& first = pushes.front();
  if (pushes.size() == 1 && has_ascending_rows(first)) {
    for (auto const row : rows_of(first)) merged.rows.push_back(row - spec_.rows().begin);
    return gradient_of(first);
  }
  merged = merge_rows(pushes, averages_round(), spec_.row_elements, spec_.rows());
  return {merged.gradient, first.dtype};
}

std::span<std::byte> Elements::place_for(std::string_view array, std::uint64_t bytes) {
  auto const place = place_for(array);
  return place && place->size() == bytes ? *place : std::span<std::byte>();
}

std::optional<std::span<std::byte>> Elements::place_for(std::string_view array) {
  for (auto const& own : optimizer_.state())
    if (own.name == array) return own.bytes;
  return std::nullopt;
}

bool Elements::begin_arrays_without(std::vector<std::string> const& present, api::ShardState& state) {
  std::vector<std::string_view> missing;
  for (auto const& array : optimizer_.state()) missing.push_back(array.name);
  for (auto const& array : optimizer_.state_elsewhere()) missing.push_back(array.name);
  std::erase_if(missing, [&](std::string_view array) { return std::ranges::find(present, array) != present.end(); });
  for (auto const array : missing) {
    if (array == "row_steps") continue;  // without it, no row has had a step of its own
    if (array != "master") {
      state.steps = 0;
      continue;
    }
    auto const values = arrived_values();
    auto const elements = values.size() / element_bytes(spec_.dtype), bytes = elements * sizeof(float);
    auto const master = place_for(array, bytes);
    if (master.size() != bytes) return false;
    if (elements > 0) devices::widen(spec_.dtype, master.data(), values.data(), elements);
  }
  return true;
}

bool Elements::restore(api::ShardState const& state) {
  if (state.rows.has_value() != rows().has_value()) return false;
  optimizer_.set_steps(state.steps);
  return true;
}

}  // namespace chorus::parameters
