#include "worker/service/operands/fused_adapter.hpp"

#include <cstring>

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
    auto block = tensors::acquire(pool, gpu(), portion().bytes / list_->blocks() * brought());
    if (!block) return block.error();
    packed_ = std::move(*block);
  }
  if (!gets) return ok();
  results_.resize(list_->tensors().size());
  for (auto const index : tensors_) {
    auto block = tensors::acquire(pool, gpu(), list_->result_bytes(list_->tensors()[index]));
    if (!block) return block.error();
    results_[index] = std::move(*block);
  }
  return ok();
}

std::vector<FusedAdapter::Copy> FusedAdapter::copies(std::uint32_t blocks) const {
  std::vector<Copy> all;
  auto const block_bytes = portion().bytes / list_->blocks();
  for (auto const& piece : portion().pieces) {
    auto const bytes = piece.bytes / list_->blocks();
    for (std::uint32_t block = 0; block < blocks; ++block)
      all.push_back({block * block_bytes + piece.at / list_->blocks(), piece.item, block * bytes, bytes});
  }
  return all;
}

Status FusedAdapter::move(std::span<devices::GpuCopy const> copies) {
  if (gpu() != nullptr) return gpu()->copy(copies);
  for (auto const& [to, from, bytes] : copies) std::memcpy(to, from, bytes);
  return ok();
}

Status FusedAdapter::combine() {
  if (portion().is_alone()) return ok();
  std::vector<devices::GpuCopy> moved;
  for (auto const& copy : copies(brought()))
    moved.push_back({packed_->data() + copy.packed, list_->tensors()[copy.item].data->data() + copy.at, copy.bytes});
  return move(moved);
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
  std::vector<devices::GpuCopy> moved;
  for (auto const& copy : copies(gotten()))
    moved.push_back({results_[copy.item]->data() + copy.at, result.data() + copy.packed, copy.bytes});
  return move(moved);
}

HeldResult FusedAdapter::results() const {
  std::vector<tensors::Store::NewVersion> versions;
  for (auto const index : tensors_) {
    auto const& tensor = list_->tensors()[index];
    versions.push_back({tensor.name, tensor.dtype, list_->result_shape(tensor), results_[index], tensor.version});
  }
  return HeldResult(std::move(versions));
}

}  // namespace chorus::service
