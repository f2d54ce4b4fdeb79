#include "worker/engine/transport/run_on_links.hpp"

namespace chorus::engine {

std::string name_of(RunSpec const& spec, plan::Rank rank) {
  return "rank " + std::to_string(rank) + (rank < spec.members.size() ? " (" + spec.members[rank].worker + ")" : "");
}

std::optional<plan::Rank> rank_of(RunSpec const& spec, std::string const& worker, std::uint64_t incarnation) {
  for (auto const& member : spec.members)
    if (member.worker == worker && member.incarnation == incarnation) return member.rank;
  return std::nullopt;
}

}  // namespace chorus::engine
