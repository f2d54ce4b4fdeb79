// Groups that the members of a group make of some of them.
#include <set>
#include <span>

#include "worker/api/errc.hpp"
#include "worker/api/members/member.hpp"
#include "worker/service/tensors/digest.hpp"

namespace chorus::embedded {
namespace {

constexpr std::size_t longest_prefix = 40;  // of 64 characters that a name may have

}  // namespace

std::vector<std::string> Member::ids() const {
  std::vector<std::string> ids;
  for (auto const& peer : assignment_.members) ids.push_back(peer.worker);
  return ids;
}

// The members agree on a name without a message: it follows from the epoch's token, which is random and the same for
// all, the ranks, and how many groups of these ranks there were before.
Result<std::shared_ptr<Member>> Member::subgroup(std::vector<std::uint32_t> const& ranks,
                                                 Machinery::TimePoint deadline) {
  std::vector<std::string> ids;
  std::set<std::uint32_t> seen;
  for (auto const rank : ranks) {
    if (rank >= place_.size)
      return Error(WorkerErrc::bad_argument, "rank " + std::to_string(rank) + " of a subgroup: group " + name_ +
                                                 " has " + std::to_string(place_.size) + " ranks");
    if (!seen.insert(rank).second)
      return Error(WorkerErrc::bad_argument, "rank " + std::to_string(rank) + " is twice in a subgroup of " + name_);
    ids.push_back(assignment_.members[rank].worker);
  }
  if (!seen.contains(place_.rank))
    return Error(WorkerErrc::bad_argument,
                 "rank " + std::to_string(place_.rank) + ", which calls, is not in the subgroup of " + name_);
  if (auto const status = standing(); status.has_error()) return status.error();
  auto const listed = service::fast_digest(std::as_bytes(std::span(ranks)));
  std::uint64_t count = 0;
  {
    std::lock_guard const lock(dividing_);
    count = subgroups_[listed]++;
  }
  auto const text = std::to_string(assignment_.token) + "/" + listed + "/" + std::to_string(count);
  auto const name = name_.substr(0, longest_prefix) + "." + service::fast_digest(std::as_bytes(std::span(text)));
  return machinery_.create(name, std::move(ids), deadline);
}

}  // namespace chorus::embedded
