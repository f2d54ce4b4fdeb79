#include "worker/api/members/subgroups.hpp"

#include <set>
#include <span>

#include "worker/api/errc.hpp"
#include "worker/service/tensors/digest.hpp"

namespace chorus::embedded {
namespace {

constexpr std::size_t longest_prefix = 40;  // of 64 characters that a name may have

}  // namespace

Result<Subgroups::Named> Subgroups::name(std::vector<std::uint32_t> const& ranks) {
  auto const& group = assignment_.group.name;
  auto const size = assignment_.members.size();
  Named named;
  std::set<std::uint32_t> seen;
  for (auto const rank : ranks) {
    if (rank >= size)
      return Error(WorkerErrc::bad_argument, "rank " + std::to_string(rank) + " of a subgroup: group " + group +
                                                 " has " + std::to_string(size) + " ranks");
    if (!seen.insert(rank).second)
      return Error(WorkerErrc::bad_argument, "rank " + std::to_string(rank) + " is twice in a subgroup of " + group);
    named.ids.push_back(assignment_.members[rank].worker);
  }
  if (!seen.contains(assignment_.rank))
    return Error(WorkerErrc::bad_argument,
                 "rank " + std::to_string(assignment_.rank) + ", which calls, is not in the subgroup of " + group);
  auto const listed = service::fast_digest(std::as_bytes(std::span(ranks)));
  std::uint64_t count = 0;
  {
    std::lock_guard const lock(mutex_);
    count = made_[listed]++;
  }
  auto const text = std::to_string(assignment_.token) + "/" + listed + "/" + std::to_string(count);
  named.name = group.substr(0, longest_prefix) + "." + service::fast_digest(std::as_bytes(std::span(text)));
  return named;
}

}  // namespace chorus::embedded
