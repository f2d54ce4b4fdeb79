// The room in /dev/shm, which all processes of a host share.
#pragma once

#include <cstdint>
#include <optional>

namespace chorus::memory {

struct SharedRoom {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

// Returns nothing if the system does not report it, or if there is no limit.
[[nodiscard]] std::optional<SharedRoom> shared_room();

// Asks the owners of all regions of this host, including this process, to return unused memory: changes `lacks` in the
// heads of the regions that this user may write to. A few system calls for each region.
void tell_of_lack();

}  // namespace chorus::memory
