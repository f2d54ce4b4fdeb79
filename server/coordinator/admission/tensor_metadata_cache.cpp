#include "server/coordinator/admission/tensor_metadata_cache.hpp"

#include <algorithm>

namespace chorus::coordinator {

bool leaves_known(AdmissionQuestion const& question, std::span<std::optional<RankTensor> const> ranks) {
  bool const keeps_shape = question.op == Op::all_reduce || question.op == Op::reduce;
  return keeps_shape && !question.in_place && !question.output &&
         std::ranges::all_of(ranks, [](auto const& rank) { return rank && rank->parts == 0; });
}

TensorMetadataCache::Known const* TensorMetadataCache::find(api::Group const& group, std::string const& tensor) {
  auto const found = entries_.find({group.name, tensor});
  if (found == entries_.end() || found->second.epoch != group.epoch) return nullptr;
  found->second.used = ++uses_;
  return &found->second.known;
}

void TensorMetadataCache::learn(api::Group const& group, std::string const& tensor, Known known) {
  entries_.insert_or_assign({group.name, tensor}, Entry{group.epoch, ++uses_, std::move(known)});
  if (entries_.size() <= most_) return;
  entries_.erase(std::ranges::min_element(entries_, {}, [](auto const& entry) { return entry.second.used; }));
}

void TensorMetadataCache::forget(std::string const& group, std::string const& tensor) {
  entries_.erase({group, tensor});
}

void TensorMetadataCache::forget(std::string const& group) {
  std::erase_if(entries_, [&group](auto const& entry) { return entry.first.first == group; });
}

}  // namespace chorus::coordinator
