// Names of the groups that the members of a group make of some of them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/service/collectives/groups/group.hpp"

namespace chorus::embedded {

// Thread-safe. The members agree on a name without a message: it follows from the epoch's token, which is random and
// the same for all, the ranks, and how many groups of these ranks there were before.
class Subgroups {
 public:
  // The assignment outlives the object.
  explicit Subgroups(service::Assignment const& assignment) : assignment_(assignment) {}
  Subgroups(Subgroups const&) = delete;
  Subgroups& operator=(Subgroups const&) = delete;

  struct Named {
    std::string name;
    std::vector<std::string> ids;  // in the order of the ranks
  };
  // Name of the next group of these ranks, each once and this member's among them. Errors: WorkerErrc::bad_argument.
  [[nodiscard]] Result<Named> name(std::vector<std::uint32_t> const& ranks);

 private:
  service::Assignment const& assignment_;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> made_;  // by the digest of their ranks
};

}  // namespace chorus::embedded
