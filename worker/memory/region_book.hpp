// The regions of other processes that are mapped here: each once, as long as somebody uses it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "worker/memory/shared_region.hpp"

namespace chorus::memory {

// Thread-safe. Regions may outlive the book.
class RegionBook {
 public:
  // Errors: as PeerRegion::open.
  [[nodiscard]] Result<std::shared_ptr<PeerRegion const>> open(Ticket const& ticket);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<PeerRegion const>> regions_;  // by the ticket's id
};

}  // namespace chorus::memory
