#include "collectives/topology/roles.hpp"

namespace chorus::topology {
namespace {

std::string name_of(plan::Program const& program) {
  if (!program.rooted) return "member";
  if (program.rank == program.spec.root) return "root";
  return program.channels.size() == 1 ? "leaf" : "interior";
}

}  // namespace

Role role_of(plan::Program const& program) {
  Role role{name_of(program), {}, {}};
  for (auto const& channel : program.channels) {
    if (channel.sends > 0) role.sends_to.push_back(channel.peer);
    if (channel.receives > 0) role.receives_from.push_back(channel.peer);
  }
  return role;
}

}  // namespace chorus::topology
