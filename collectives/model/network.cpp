#include "collectives/model/network.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::model {
namespace {

// Returns the seconds per byte of the fastest link that leaves a group of this level.
double fastest_beyond(Constants const& constants, std::size_t level) {
  auto fastest = constants.level[level + 1].beta_s_per_byte;
  for (auto beyond = level + 1; beyond < all_levels.size(); ++beyond)
    fastest = std::min(fastest, constants.level[beyond].beta_s_per_byte);
  return fastest;
}

}  // namespace

Network::Network(std::span<Locality const> localities, Constants const& constants, topology::LinkMatrix const* links)
    : localities_(localities), constants_(constants), groups_(topology::locality_groups(localities)), links_(links) {
  CHORUS_ASSERT(!localities.empty(), "a network connects at least one rank");
  auto alone_up_to = std::size_t{0};  // levels whose groups are single ranks
  for (std::size_t i = 0; i < uplink_levels; ++i) {
    auto const level = static_cast<Level>(i);
    auto const sizes = group_sizes(level);
    largest_group_[i] = *std::max_element(sizes.begin(), sizes.end());
    if (sizes.size() == ranks()) alone_up_to = i + 1;
    if (sizes.size() == 1 && alone_up_to == i) only_level_ = level;
    auto const shared_s = constants.uplink_s_per_byte[i];
    if (shared_s > 0 && sizes.size() > 1 && (largest_group_[i] > 1 || shared_s > fastest_beyond(constants, i)))
      limited_levels_.push_back(level);
  }
  if (is_crowded()) {
    for (auto& link : constants_.level) link.alpha_s += constants.wake_s;
    wake_s_ = constants.wake_s;
  }
  if (links_ == nullptr) {
    if (only_level_) only_hop_ = hop_of(constants_.link(*only_level_));
    return;
  }
  CHORUS_ASSERT(links_->size() == ranks(), "a link matrix of as many workers as there are ranks");
  pairs_.resize(std::size_t{ranks()} * ranks());
  for (plan::Rank from = 0; from < ranks(); ++from)
    for (plan::Rank to = 0; to < ranks(); ++to)
      if (auto const& link = links_->link(from, to); from != to)
        pairs_[std::size_t{from} * ranks() + to] = {link.latency_s + wake_s_, 1e-9 / link.bandwidth_gbyte_per_s};
}

double Network::gamma_s_per_byte(std::uint64_t vector_bytes) const {
  auto const from_memory = constants_.gamma_s_per_byte;
  if (constants_.cache_bytes == 0 || is_crowded()) return from_memory;
  if (vector_bytes <= constants_.cache_bytes) return constants_.cached_gamma_s_per_byte;
  auto const cached = static_cast<double>(constants_.cache_bytes) / static_cast<double>(vector_bytes);
  return cached * constants_.cached_gamma_s_per_byte + (1 - cached) * from_memory;
}

std::vector<std::uint32_t> Network::group_sizes(Level level) const {
  std::vector<std::uint32_t> by_first(ranks());
  for (plan::Rank rank = 0; rank < ranks(); ++rank) ++by_first[group(level, rank)];
  std::erase(by_first, 0u);
  return by_first;
}

std::string Network::name_of_group(Level level, plan::Rank group) const {
  auto const& at = localities_[group];
  std::array<std::string const*, uplink_levels> const labels{&at.host, &at.rack, &at.zone, &at.region};
  std::string path;
  for (auto outwards = labels.size(); outwards-- > static_cast<std::size_t>(level);)
    if (!labels[outwards]->empty()) path += (path.empty() ? "" : "/") + *labels[outwards];
  return std::string(name(level)) + " " + (path.empty() ? "of rank " + std::to_string(group) : path);
}

}  // namespace chorus::model
