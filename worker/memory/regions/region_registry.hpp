// The mapped regions of other processes: each is mapped once, as long as it is in use.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "worker/memory/regions/shared_region.hpp"

namespace chorus::memory {

// Thread-safe. Regions may outlive the registry.
class RegionRegistry {
 public:
  // Errors: as PeerRegion::open.
  [[nodiscard]] Result<std::shared_ptr<PeerRegion const>> open(Ticket const& ticket);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<PeerRegion const>> regions_;  // by the ticket's id
};

}  // namespace chorus::memory
