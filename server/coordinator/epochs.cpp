#include "server/coordinator/epochs.hpp"

#include <algorithm>
#include <limits>

#include "collectives/core/assert.hpp"

namespace chorus::coordinator {

std::uint32_t& Epochs::last(std::string const& name) {
  std::erase(retired_, name);
  return last_.try_emplace(name, floor_).first->second;
}

std::uint32_t Epochs::next(std::string const& name) {
  auto& epoch = last(name);
  CHORUS_ASSERT(epoch < std::numeric_limits<std::uint32_t>::max(), "four thousand million epochs of one group");
  return ++epoch;
}

void Epochs::seen(std::string const& name, std::uint32_t epoch) {
  auto& known = last(name);
  known = std::max(known, epoch);
}

void Epochs::retire(std::string const& name) {
  if (!last_.contains(name)) return;
  std::erase(retired_, name);
  retired_.push_back(name);
  if (retired_.size() <= names_kept_) return;
  auto const oldest = last_.find(retired_.front());
  floor_ = std::max(floor_, oldest->second);
  last_.erase(oldest);
  retired_.pop_front();
}

}  // namespace chorus::coordinator
