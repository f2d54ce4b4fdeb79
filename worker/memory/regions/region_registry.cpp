#include "worker/memory/regions/region_registry.hpp"

#include <utility>

namespace chorus::memory {

Result<std::shared_ptr<PeerRegion const>> RegionRegistry::open(Ticket const& ticket) {
  std::lock_guard const lock(mutex_);
  if (auto const known = regions_[ticket.id].lock();
      known && known->ticket() == ticket && !known->mapping().is_broken())
    return known;
  auto opened = PeerRegion::open(ticket);
  std::erase_if(regions_, [](auto const& entry) { return entry.second.expired(); });
  if (opened.has_value()) regions_[ticket.id] = *opened;
  return opened;
}

}  // namespace chorus::memory
