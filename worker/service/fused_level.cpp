#include "worker/service/fused_level.hpp"

#include <limits>

#include "collectives/plan/digest.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/service/problems.hpp"
#include "worker/service/tensor_description.hpp"

namespace chorus::service {
namespace {

using http::Checked;
using http::Problem;
using http::ProblemCode;

// One call, whatever the sizes.
constexpr engine::FusionLimits one_bucket{.bucket_bytes = std::numeric_limits<std::uint64_t>::max(),
                                          .alone_bytes = std::numeric_limits<std::uint64_t>::max()};

engine::FusionBucket bucket_of(std::vector<tensors::Tensor> const& tensors) {
  std::vector<engine::FusionItem> items;
  for (auto const& tensor : tensors) items.push_back({tensor.data->size_bytes(), tensor.dtype});
  auto buckets = engine::fuse(items, one_bucket);
  if (buckets.empty()) return {.dtype = tensors.front().dtype, .bytes = 0, .pieces = {}};
  return std::move(buckets.front());
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

FusedLevel::FusedLevel(RunOrder const& order, std::vector<tensors::Tensor> tensors)
    : averages_(order.reduce == ReduceOp::avg && order.contributions > 0 && reduces(order.spec.op)),
      contributions_(order.contributions),
      tensors_(std::move(tensors)),
      bucket_(bucket_of(tensors_)),
      agreement_(digest_of(tensors_)) {
  for (auto const& tensor : tensors_) version_ += tensor.version;
}

Checked<std::shared_ptr<FusedLevel>> FusedLevel::make(RunOrder const& order, tensors::Store const& store) {
  std::vector<tensors::Tensor> found;
  found.reserve(order.fused.size());
  for (auto const& name : order.fused) {
    auto tensor = store.get(name);
    if (!tensor) {
      auto problem = to_problem(tensor.error(), {order.rank});
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
  std::shared_ptr<FusedLevel> level(new FusedLevel(order, std::move(found)));
  if (order.admitted && (order.admitted->version != level->version_ || order.admitted->dtype != level->dtype()))
    return Problem(ProblemCode::mismatch, "the tensors have changed since they were admitted");
  return level;
}

std::vector<std::shared_ptr<tensors::Block const>> FusedLevel::blocks() const {
  std::vector<std::shared_ptr<tensors::Block const>> blocks;
  for (auto const& tensor : tensors_) blocks.push_back(tensor.data);
  return blocks;
}

std::string FusedLevel::agreement_text() const {
  return " of " + std::to_string(tensors_.size()) + " tensors, " + tensors_.front().name + " first, list " +
         std::to_string(agreement_);
}

Status FusedLevel::allocate(tensors::Pool& pool, bool brings, bool gets) {
  if (brings) {
    auto block = tensors::acquire(pool, gpu(), bucket_.bytes);
    if (!block) return block.error();
    packed_ = std::move(*block);
  }
  if (!gets) return ok();
  for (auto const& tensor : tensors_) {
    auto block = tensors::acquire(pool, gpu(), tensor.data->size_bytes());
    if (!block) return block.error();
    results_.push_back(std::move(*block));
  }
  return ok();
}

Status FusedLevel::combine() {
  if (gpu() != nullptr) {
    std::vector<devices::GpuCopy> copies;
    for (auto const& piece : bucket_.pieces)
      copies.push_back({packed_->data() + piece.at, tensors_[piece.item].data->data(), piece.bytes});
    return gpu()->copy(copies);
  }
  std::vector<std::span<std::byte const>> from;
  for (auto const& tensor : tensors_) from.push_back(tensor.data->bytes());
  engine::pack(bucket_, from, packed_->bytes());
  return ok();
}

std::span<std::byte const> FusedLevel::combined() const {
  return packed_ ? std::span<std::byte const>(packed_->bytes()) : std::span<std::byte const>();
}

Status FusedLevel::spread(std::span<std::byte> result) {
  auto const divisor = static_cast<std::uint32_t>(contributions_);
  if (gpu() != nullptr) {
    if (averages_)
      if (auto const divided = gpu()->divide(result, dtype(), divisor); !divided) return divided;
    std::vector<devices::GpuCopy> copies;
    for (auto const& piece : bucket_.pieces)
      copies.push_back({results_[piece.item]->data(), result.data() + piece.at, piece.bytes});
    return gpu()->copy(copies);
  }
  if (averages_) devices::find_divide(dtype())(result.data(), elements(), divisor);
  std::vector<std::span<std::byte>> to;
  for (auto const& block : results_) to.push_back(block->bytes());
  engine::unpack(bucket_, result, to);
  return ok();
}

HeldResult FusedLevel::results() const {
  std::vector<tensors::Store::NewVersion> versions;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    versions.push_back({tensors_[i].name, tensors_[i].dtype, tensors_[i].shape, results_[i], tensors_[i].version});
  return HeldResult(std::move(versions));
}

}  // namespace chorus::service
