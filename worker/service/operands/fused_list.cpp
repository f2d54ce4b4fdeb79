#include "worker/service/operands/fused_list.hpp"

#include <algorithm>

#include "collectives/plan/digest.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/tensor_description.hpp"

namespace chorus::service {
namespace {

using http::Checked;

std::vector<engine::FusionBucket> portions_of(std::vector<tensors::Tensor> const& tensors) {
  std::vector<engine::FusionItem> items;
  for (auto const& tensor : tensors) items.push_back({tensor.data->size_bytes(), tensor.dtype});
  auto portions = engine::fuse(items, fused_portion);
  if (portions.empty()) portions.push_back({.dtype = tensors.front().dtype, .bytes = 0, .pieces = {}});
  return portions;
}

std::uint64_t digest_of(std::vector<tensors::Tensor> const& tensors) {
  std::uint64_t digest = tensors.size();
  for (auto const& tensor : tensors) {
    std::uint64_t const bytes = tensor.data->size_bytes();
    digest = plan::digest(tensor.name.data(), tensor.name.size(), digest);
    digest = plan::digest(&bytes, sizeof bytes, digest);
  }
  return digest | 1;
}

std::string at(std::size_t index) { return "/tensors/" + std::to_string(index); }

}  // namespace

bool takes_fused(Op op) { return op == Op::all_reduce || op == Op::reduce || op == Op::broadcast; }

FusedList::FusedList(std::vector<tensors::Tensor> tensors)
    : tensors_(std::move(tensors)), portions_(portions_of(tensors_)), agreement_(digest_of(tensors_)) {
  for (auto const& portion : portions_) bytes_ += portion.bytes;
}

Checked<std::shared_ptr<FusedList const>> FusedList::make(std::vector<std::string> const& names, plan::Rank rank,
                                                          tensors::Store const& store) {
  std::vector<tensors::Tensor> found;
  found.reserve(names.size());
  for (auto const& name : names) {
    auto tensor = store.get(name);
    if (!tensor) {
      auto problem = to_problem(tensor.error(), {rank});
      problem.errors.push_back({at(found.size()), tensor.error().detail});
      return problem;
    }
    if (!found.empty() && tensor->dtype != found.front().dtype)
      return invalid_field(at(found.size()), "is " + std::string(chorus::name(tensor->dtype)) + ", the first one is " +
                                                 std::string(chorus::name(found.front().dtype)));
    if (!found.empty() && tensor->data->gpu() != found.front().data->gpu())
      return invalid_field(at(found.size()),
                           "lies on " + device_of(*tensor) + ", the first one on " + device_of(found.front()));
    found.push_back(std::move(*tensor));
  }
  return std::shared_ptr<FusedList const>(new FusedList(std::move(found)));
}

std::uint64_t FusedList::version(std::size_t portion) const {
  std::uint64_t sum = 0;
  for (auto const index : tensors_of(*this, portion)) sum += tensors_[index].version;
  return sum;
}

std::vector<std::size_t> tensors_of(FusedList const& list, std::size_t portion) {
  std::vector<std::size_t> indices;
  for (auto const& piece : list.portions()[portion].pieces) indices.push_back(piece.item);
  if (portion > 0) return indices;
  for (std::size_t i = 0; i < list.tensors().size(); ++i)
    if (list.tensors()[i].data->size_bytes() == 0) indices.push_back(i);
  std::ranges::sort(indices);
  return indices;
}

std::string names_of(FusedList const& list, std::size_t portion) {
  auto const indices = tensors_of(list, portion);
  auto const& first = list.tensors()[indices.front()].name;
  return indices.size() == 1 ? first : first + " and " + std::to_string(indices.size() - 1) + " more";
}

}  // namespace chorus::service
