#include "worker/parameters/shard/elements/dense_elements.hpp"

#include <cstring>

#include "worker/parameters/shard/pushes/dense_step.hpp"
#include "worker/parameters/shard/pushes/row_step.hpp"

namespace chorus::parameters {

DenseElements::DenseElements(ShardSpec const& spec, tensors::Pool& pool, Optimizer optimizer,
                             std::shared_ptr<tensors::Block> values)
    : Elements(spec, pool, std::move(optimizer)) {
  values_ = std::move(values);
  optimizer_.adopt(values_->bytes(), 0);
}

// The pushed block becomes the values: nothing is copied.
Status DenseElements::prepare_values(ElementsChange& change, std::shared_ptr<tensors::Block const> data) {
  change.bytes = data->size_bytes();
  change.is_new = true;
  change.values = std::const_pointer_cast<tensors::Block>(data);
  change.begin = [this, data = std::move(data)] {
    optimizer_.adopt(data->bytes(), 0);
    return ok();
  };
  return ok();
}

Status DenseElements::prepare_target(ElementsChange& change) {
  change.is_new = true;
  change.is_in_place = values_.use_count() == 1;
  if (change.is_in_place) {
    change.values = values_;
    return ok();
  }
  auto block = pool_.acquire(spec_.bytes());
  if (!block) return block.error();
  change.values = std::move(*block);
  return ok();
}

Status DenseElements::prepare_step(ElementsChange& change, std::vector<Push> gradients) {
  if (auto status = prepare_target(change); !status) return status;
  auto const& first = gradients.front();
  if (first.kind == PushKind::rows) {
    prepare_rows(change, std::move(gradients));
    return ok();
  }
  change.bytes = spec_.bytes() * (2 + gradients.size());
  std::shared_ptr<tensors::Block> sum;
  if (sums(gradients)) {
    auto acquired = pool_.acquire(first.data->size_bytes());
    if (!acquired) return acquired.error();
    sum = std::move(*acquired);
  }
  auto const step = std::make_shared<DenseStep>(optimizer_, DenseStep::Values{values_, change.values},
                                                std::move(gradients), std::move(sum), spec_.averages);
  change.elements = spec_.elements();
  change.begin = [step] {
    step->begin();
    return ok();
  };
  change.compute = [step](std::uint64_t from, std::uint64_t count) { step->compute(from, count); };
  return ok();
}

void DenseElements::prepare_rows(ElementsChange& change, std::vector<Push> gradients) {
  for (auto const& push : gradients) change.bytes += 2 * push.data->size_bytes();
  change.bytes += change.is_in_place ? 0 : spec_.bytes();
  change.elements = RowStep::elements_max(gradients, spec_.row_elements);
  auto const step = std::make_shared<RowStep>(optimizer_, std::move(gradients), spec_.row_elements);
  change.begin = [this, step, source = values_, target = change.values] {
    if (source != target && source->size_bytes() > 0) std::memcpy(target->data(), source->data(), source->size_bytes());
    MergedRows merged;
    auto const gradient = merge(step->pushes(), merged);
    step->begin(target, std::move(merged), gradient);
    return ok();
  };
  change.compute = [step](std::uint64_t from, std::uint64_t count) { step->compute(from, count); };
}

Status DenseElements::add_arrays(std::vector<ShardImage::Array>& arrays) {
  std::shared_ptr<tensors::Block const> const values = values_;
  arrays.push_back({"values", spec_.dtype, 1, {values, values->bytes()}});
  for (auto const& array : optimizer_.state())
    if (auto added = add_copy(arrays, array, array.bytes, array.elements_each); !added) return added;
  return ok();
}

std::optional<std::span<std::byte>> DenseElements::place_for(std::string_view array) {
  return array == "values" ? values_->bytes() : Elements::place_for(array);
}

}  // namespace chorus::parameters
