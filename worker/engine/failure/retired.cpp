#include "worker/engine/failure/retired.hpp"

#include <algorithm>

namespace chorus::engine {

Failure Retired::told_to(std::string const& worker) const {
  if (std::find(left_out.begin(), left_out.end(), worker) == left_out.end()) return failure;
  return {EngineErrc::epoch_fenced, failure.text, {}, {}};
}

Retired const& RetiredEpochs::add(Retired epoch) {
  if (epochs_.size() == remembered) epochs_.pop_front();
  return epochs_.emplace_back(std::move(epoch));
}

Retired const* RetiredEpochs::find(std::uint64_t token, std::uint32_t epoch) const {
  auto const found = std::find_if(epochs_.begin(), epochs_.end(), [&](auto const& retired) {
    return retired.token == token && retired.epoch == epoch;
  });
  return found == epochs_.end() ? nullptr : &*found;
}

}  // namespace chorus::engine
