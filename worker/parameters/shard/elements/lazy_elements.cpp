#include "worker/parameters/shard/elements/lazy_elements.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/parameters/shard/pushes/row_step.hpp"

namespace chorus::parameters {

LazyElements::LazyElements(ShardSpec const& spec, tensors::Pool& pool, Optimizer optimizer,
                           Initializer const& initializer, std::shared_ptr<tensors::Block> values)
    : Elements(spec, pool, std::move(optimizer)), initializer_(initializer) {
  values_ = std::move(values);
}

std::vector<std::uint64_t> LazyElements::created_by(std::span<Push const* const> pushes) const {
  std::vector<std::uint64_t> created;
  for (auto const* push : pushes)
    for (auto const row : rows_of(*push))
      if (!index_.place(row)) created.push_back(row);
  std::ranges::sort(created);
  auto const repeated = std::ranges::unique(created);
  created.erase(repeated.begin(), repeated.end());
  return created;
}

std::uint64_t LazyElements::rows_to_look_at(Push const& push, std::span<Push const> held) const {
  if (push.kind != PushKind::rows) return 0;
  auto most = push.rows;
  for (auto const& other : held) most += other.rows;
  return rows_count_ + most <= *spec_.lazy_rows ? 0 : most;  // 0: there is room even if all rows are new
}

std::optional<http::Problem> LazyElements::lacks_room(Push const& push, std::span<Push const> held) const {
  if (rows_to_look_at(push, held) == 0) return std::nullopt;
  std::vector<Push const*> pushes{&push};
  for (auto const& other : held) pushes.push_back(&other);
  auto const created = created_by(pushes).size();
  if (index_.size() + created <= *spec_.lazy_rows) return std::nullopt;
  return http::Problem(http::ProblemCode::rows_exhausted,
                       std::to_string(index_.size()) + " rows exist in shard " + std::to_string(spec_.index) + " of " +
                           spec_.parameter + ", " + std::to_string(created) + " are new, and at most " +
                           std::to_string(*spec_.lazy_rows) + " may exist (lazy_rows)");
}

Status LazyElements::prepare_values(ElementsChange&, std::shared_ptr<tensors::Block const>) {
  CHORUS_ASSERT(false, "values of lazy rows are refused");
  return ok();
}

void LazyElements::finish(ElementsChange change) {
  Elements::finish(std::move(change));
  rows_count_ = index_.size();
}

// Grows the values by a half, so that adding row by row is not quadratic.
Status LazyElements::prepare_target(ElementsChange& change, std::uint64_t rows) {
  auto const row_bytes = spec_.row_bytes();
  change.is_new = true;
  auto const needed = rows * row_bytes, present = std::uint64_t{values_->size_bytes()};
  change.is_in_place = values_.use_count() == 1 && present >= needed;
  if (change.is_in_place) {
    change.values = values_;
    return ok();
  }
  auto const grown = std::min(present + present / 2, *spec_.lazy_rows * row_bytes);
  auto block = pool_.acquire(needed <= present ? present : std::max(needed, grown));
  if (!block) return block.error();
  change.values = std::move(*block);
  return ok();
}

Status LazyElements::prepare_step(ElementsChange& change, std::vector<Push> gradients) {
  std::vector<Push const*> pushes;
  for (auto const& push : gradients) pushes.push_back(&push);
  auto created = created_by(pushes);
  change.creates_rows = !created.empty();
  auto const before = index_.size(), after = before + created.size();
  if (auto status = prepare_target(change, after); !status) return status;
  // State beyond the existing rows is initial, and stays so if the change is abandoned.
  if (optimizer_.elements() < after * spec_.row_elements)
    if (auto status = optimizer_.grow(after * spec_.row_elements); !status) return status;
  for (auto const& push : gradients) change.bytes += 2 * push.data->size_bytes();
  auto const row_bytes = spec_.row_bytes();
  change.bytes += created.size() * row_bytes + (change.is_in_place ? 0 : before * row_bytes);
  change.elements = RowStep::elements_max(gradients, spec_.row_elements);
  auto const step = std::make_shared<RowStep>(optimizer_, std::move(gradients), spec_.row_elements);
  change.begin = [this, step, before, row_bytes, source = values_, target = change.values,
                  created = std::move(created)] {
    if (source != target && before > 0) std::memcpy(target->data(), source->data(), before * row_bytes);
    for (std::size_t i = 0; i < created.size(); ++i) {
      auto const values = target->bytes().subspan((before + i) * row_bytes, row_bytes);
      initializer_.fill(created[i], values);
      optimizer_.adopt(values, (before + i) * spec_.row_elements);
    }
    auto merged = merge_rows(step->pushes(), averages_round(), spec_.row_elements, spec_.rows());
    for (auto const row : created) index_.add(row);
    for (auto& row : merged.rows) row = *index_.place(row + spec_.rows().begin);
    Gradient const gradient{merged.gradient, step->pushes().front().dtype};
    step->begin(target, std::move(merged), gradient);
    return ok();
  };
  change.compute = [step](std::uint64_t from, std::uint64_t count) { step->compute(from, count); };
  return ok();
}

void LazyElements::copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const {
  auto const row_bytes = spec_.row_bytes();
  for (auto const row : rows) {
    auto const place = index_.place(row);
    auto const to = into.first(row_bytes);
    if (!place)
      initializer_.fill(row, to);
    else if (row_bytes > 0)
      std::memcpy(to.data(), values_->data() + *place * row_bytes, row_bytes);
    into = into.subspan(row_bytes);
  }
}

Status LazyElements::add_arrays(std::vector<ShardImage::Array>& arrays) {
  auto const numbers = std::as_bytes(index_.rows());
  if (auto added = add_copy(arrays, {"rows", Dtype::u64, 1, {}}, numbers, 0); !added) return added;
  auto const elements = index_.size() * spec_.row_elements;
  auto const used = values_->bytes().first(elements * element_bytes(spec_.dtype));
  arrays.push_back({"row_values", spec_.dtype, 0, {values_, used}});
  for (auto const& array : optimizer_.state()) {
    auto const content = array.bytes.first(elements / array.elements_each * element_bytes(array.dtype));
    if (auto added = add_copy(arrays, array, content, 0); !added) return added;
  }
  return ok();
}

std::span<std::byte> LazyElements::place_for(std::string_view array, std::uint64_t bytes) {
  auto const row_bytes = spec_.row_bytes();
  auto const acquire = [&](std::shared_ptr<tensors::Block>& block, std::uint64_t each) -> std::span<std::byte> {
    if (each == 0 || bytes % each != 0 || bytes / each > *spec_.lazy_rows) return {};
    if (!block || block->size_bytes() != bytes) {
      auto acquired = pool_.acquire(bytes);
      if (!acquired) return {};
      block = std::move(*acquired);
    }
    return block->bytes();
  };
  if (array == "rows") return acquire(arriving_rows_, sizeof(std::uint64_t));
  if (array == "row_values") return acquire(arriving_values_, row_bytes);
  for (auto const& own : optimizer_.state()) {
    if (own.name != array) continue;
    auto const of_a_row = spec_.row_elements / own.elements_each * element_bytes(own.dtype);
    if (of_a_row == 0 || bytes % of_a_row != 0 || bytes / of_a_row > *spec_.lazy_rows) return {};
    auto const elements = bytes / of_a_row * spec_.row_elements;
    if (optimizer_.elements() < elements && !optimizer_.grow(elements)) return {};
    // grow() has invalidated earlier spans.
    for (auto const& grown : optimizer_.state())
      if (grown.name == array) return grown.bytes.first(bytes);
  }
  return {};
}

bool LazyElements::restore(api::ShardState const& state) {
  return Elements::restore(state) && restore_rows(*state.rows);
}

bool LazyElements::restore_rows(std::uint64_t count) {
  if (count > *spec_.lazy_rows) return false;
  auto const row_bytes = spec_.row_bytes();
  auto const has = [](std::shared_ptr<tensors::Block> const& block, std::uint64_t bytes) {
    return (block ? block->size_bytes() : 0) == bytes;
  };
  if (!has(arriving_rows_, count * sizeof(std::uint64_t)) || !has(arriving_values_, count * row_bytes)) return false;
  if (count > 0) {
    auto index = RowIndex::from({reinterpret_cast<std::uint64_t const*>(arriving_rows_->data()), count}, spec_.rows());
    if (!index) return false;
    index_ = std::move(*index);
    rows_count_ = count;
    values_ = std::move(arriving_values_);
    if (optimizer_.elements() < count * spec_.row_elements && !optimizer_.grow(count * spec_.row_elements))
      return false;
  }
  arriving_rows_ = nullptr;
  arriving_values_ = nullptr;
  return true;
}

}  // namespace chorus::parameters
