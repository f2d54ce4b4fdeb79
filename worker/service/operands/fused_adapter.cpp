#include "worker/service/operands/fused_adapter.hpp"

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::service {

FusedAdapter::FusedAdapter(RunOrder const& order)
    : list_(order.fused), number_(order.portion), tensors_(tensors_of(*list_, number_)) {}

std::vector<std::shared_ptr<tensors::Block const>> FusedAdapter::blocks() const {
  std::vector<std::shared_ptr<tensors::Block const>> blocks;
  for (auto const index : tensors_) blocks.push_back(list_->tensors()[index].data);
  return blocks;
}

std::string FusedAdapter::agreement_text() const {
  auto const& tensors = list_->tensors();
  return " of " + std::to_string(tensors.size()) + " tensors, " + tensors.front().name + " first, list " +
         std::to_string(agreement());
}

Status FusedAdapter::allocate(tensors::Pool& pool, bool brings, bool gets) {
  if (brings && !portion().is_alone()) {
    auto block = tensors::acquire(pool, gpu(), portion().bytes);
    if (!block) return block.error();
    packed_ = std::move(*block);
  }
  if (!gets) return ok();
  results_.resize(list_->tensors().size());
  for (auto const index : tensors_) {
    auto block = tensors::acquire(pool, gpu(), list_->tensors()[index].data->size_bytes());
    if (!block) return block.error();
    results_[index] = std::move(*block);
  }
  return ok();
}

Status FusedAdapter::combine() {
  if (portion().is_alone()) return ok();
  auto const& tensors = list_->tensors();
  if (gpu() != nullptr) {
    std::vector<devices::GpuCopy> copies;
    for (auto const& piece : portion().pieces)
      copies.push_back({packed_->data() + piece.at, tensors[piece.item].data->data(), piece.bytes});
    return gpu()->copy(copies);
  }
  std::vector<std::span<std::byte const>> from;
  for (auto const& tensor : tensors) from.push_back(tensor.data->bytes());
  engine::pack(portion(), from, packed_->bytes());
  return ok();
}

std::span<std::byte const> FusedAdapter::combined() const {
  if (portion().is_alone()) return list_->tensors()[only()].data->bytes();
  return packed_ ? std::span<std::byte const>(packed_->bytes()) : std::span<std::byte const>();
}

std::shared_ptr<tensors::Block> FusedAdapter::destination() const {
  return portion().is_alone() && !results_.empty() ? results_[only()] : nullptr;
}

Status FusedAdapter::spread(std::span<std::byte> result) {
  if (portion().is_alone()) return ok();
  if (gpu() != nullptr) {
    std::vector<devices::GpuCopy> copies;
    for (auto const& piece : portion().pieces)
      copies.push_back({results_[piece.item]->data(), result.data() + piece.at, piece.bytes});
    return gpu()->copy(copies);
  }
  std::vector<std::span<std::byte>> to;
  for (auto const& block : results_) to.push_back(block ? block->bytes() : std::span<std::byte>());
  engine::unpack(portion(), result, to);
  return ok();
}

HeldResult FusedAdapter::results() const {
  std::vector<tensors::Store::NewVersion> versions;
  for (auto const index : tensors_) {
    auto const& tensor = list_->tensors()[index];
    versions.push_back({tensor.name, tensor.dtype, tensor.shape, results_[index], tensor.version});
  }
  return HeldResult(std::move(versions));
}

}  // namespace chorus::service
