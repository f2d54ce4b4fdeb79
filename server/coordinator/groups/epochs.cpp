#include "server/coordinator/groups/epochs.hpp"

#include <algorithm>
#include <limits>

#include "collectives/core/assert.hpp"

namespace chorus::coordinator {

std::uint32_t& Epochs::last(std::string const& name) {
  std::erase(retired_, name);
  retirements_.erase(name);
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

std::optional<std::string> Epochs::retire(std::string const& name) {
  if (!last_.contains(name)) return std::nullopt;
  std::erase(retired_, name);
  retired_.push_back(name);
  retirements_[name] = next_retirement_++;
  if (retired_.size() <= names_kept_) return std::nullopt;
  auto forgotten = std::move(retired_.front());
  retired_.pop_front();
  floor_ = std::max(floor_, last_.at(forgotten));
  last_.erase(forgotten);
  retirements_.erase(forgotten);
  return forgotten;
}

JournalEpoch Epochs::kept(std::string const& name) const {
  JournalEpoch kept{last_.at(name), std::nullopt};
  if (auto const retired = retirements_.find(name); retired != retirements_.end()) kept.retired = retired->second;
  return kept;
}

void Epochs::restore(std::map<std::string, JournalEpoch> const& kept, std::uint32_t floor) {
  floor_ = floor;
  std::map<std::uint64_t, std::string> in_order;
  for (auto const& [name, epoch] : kept) {
    last_[name] = epoch.last;
    if (!epoch.retired) continue;
    retirements_[name] = *epoch.retired;
    in_order.emplace(*epoch.retired, name);
    next_retirement_ = std::max(next_retirement_, *epoch.retired + 1);
  }
  for (auto const& [number, name] : in_order) retired_.push_back(name);
}

}  // namespace chorus::coordinator
