#include "worker/service/operands/fused_list.hpp"

#include <algorithm>

#include "collectives/plan/digest.hpp"
#include "collectives/plan/sizes/rows.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/tensor_description.hpp"

namespace chorus::service {
namespace {

using http::Checked;

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

// A block is whole rows, and all blocks of a tensor have as many.
std::optional<http::Problem> check_rows(FusedCall const& call, tensors::Tensor const& tensor, std::size_t index) {
  bool const divides = call.op == Op::reduce_scatter || call.op == Op::all_to_all;
  auto const rows = plan::rows_of(tensor.shape).count;
  if (divides && rows % call.ranks != 0)
    return invalid_field(at(index), "has " + std::to_string(rows) + " rows, which " + std::to_string(call.ranks) +
                                        " ranks cannot divide evenly; a call with this tensor alone can");
  bool const changes_shape = call.op == Op::all_gather || call.op == Op::reduce_scatter;
  if (changes_shape && tensor.data->region() != nullptr)
    return invalid_field(at(index), "lies in region " + tensor.data->region()->name() +
                                        ", and its result has another shape: call it alone with another output");
  return std::nullopt;
}

}  // namespace

bool takes_fused(Op op) { return op != Op::gather && op != Op::scatter && op != Op::barrier; }

FusedList::FusedList(FusedCall call, std::vector<tensors::Tensor> tensors)
    : call_(call), tensors_(std::move(tensors)), portions_(divide()), agreement_(digest_of(tensors_)) {
  for (auto const& portion : portions_) bytes_ += portion.bytes;
}

std::vector<engine::FusionBucket> FusedList::divide() const {
  std::vector<engine::FusionItem> items;
  for (auto const& tensor : tensors_) items.push_back({whole_bytes(tensor), tensor.dtype});
  auto portions = engine::fuse(items, fused_portion);
  if (portions.empty()) portions.push_back({.dtype = dtype(), .bytes = 0, .pieces = {}});
  return portions;
}

std::uint64_t FusedList::whole_bytes(tensors::Tensor const& tensor) const {
  return tensor.data->size_bytes() * (call_.op == Op::all_gather ? call_.ranks : 1);
}

std::uint64_t FusedList::result_bytes(tensors::Tensor const& tensor) const {
  return whole_bytes(tensor) / (call_.op == Op::reduce_scatter ? call_.ranks : 1);
}

tensors::Shape FusedList::result_shape(tensors::Tensor const& tensor) const {
  auto const rows = plan::rows_of(tensor.shape).count;
  if (call_.op == Op::all_gather) return plan::with_rows(tensor.shape, rows * call_.ranks);
  if (call_.op == Op::reduce_scatter) return plan::with_rows(tensor.shape, rows / call_.ranks);
  return tensor.shape;
}

Checked<std::shared_ptr<FusedList const>> FusedList::make(FusedCall call, std::vector<std::string> const& names,
                                                          tensors::Store const& store) {
  std::vector<tensors::Tensor> found;
  found.reserve(names.size());
  for (auto const& name : names) {
    auto tensor = store.get(name);
    if (!tensor) {
      auto problem = to_problem(tensor.error(), {call.rank});
      problem.errors.push_back({at(found.size()), tensor.error().detail});
      return problem;
    }
    if (!found.empty() && tensor->dtype != found.front().dtype)
      return invalid_field(at(found.size()), "is " + std::string(chorus::name(tensor->dtype)) + ", the first one is " +
                                                 std::string(chorus::name(found.front().dtype)));
    if (!found.empty() && tensor->data->gpu() != found.front().data->gpu())
      return invalid_field(at(found.size()),
                           "lies on " + device_of(*tensor) + ", the first one on " + device_of(found.front()));
    if (auto problem = check_rows(call, *tensor, found.size())) return std::move(*problem);
    found.push_back(std::move(*tensor));
  }
  return std::shared_ptr<FusedList const>(new FusedList(call, std::move(found)));
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
