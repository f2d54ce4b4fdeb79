#include "collectives/topology/underlay.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "collectives/core/errc.hpp"
#include "collectives/topology/link_matrix.hpp"

namespace chorus::topology {
namespace {

constexpr auto unreached = std::numeric_limits<std::uint32_t>::max();

Error bad(std::string detail) { return {PlanErrc::bad_parameter, std::move(detail)}; }

Error no_node(std::string const& what, std::uint32_t node, std::uint32_t nodes) {
  return bad(what + " names node " + std::to_string(node) + ", but the underlay has " + std::to_string(nodes) +
             " nodes, numbered from 0");
}

using Neighbours = std::vector<std::vector<std::uint32_t>>;

std::vector<std::uint32_t> hops_from(std::uint32_t start, Neighbours const& neighbours) {
  std::vector<std::uint32_t> hops(neighbours.size(), unreached), reached{start};
  hops[start] = 0;
  for (std::size_t next = 0; next < reached.size(); ++next)
    for (auto const neighbour : neighbours[reached[next]])
      if (hops[neighbour] == unreached) {
        hops[neighbour] = hops[reached[next]] + 1;
        reached.push_back(neighbour);
      }
  return hops;
}

}  // namespace

Result<SquareMatrix> hop_counts(Underlay const& underlay, std::span<std::uint32_t const> workers) {
  if (workers.empty() || workers.size() > max_matrix_workers)
    return bad(std::to_string(workers.size()) + " workers in the underlay; expected 1 to " +
               std::to_string(max_matrix_workers));
  if (underlay.nodes > max_underlay_nodes)
    return bad("an underlay of " + std::to_string(underlay.nodes) + " nodes; expected at most " +
               std::to_string(max_underlay_nodes));
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (workers[i] >= underlay.nodes) return no_node("worker " + std::to_string(i), workers[i], underlay.nodes);
  Neighbours neighbours(underlay.nodes);
  for (std::size_t i = 0; i < underlay.links.size(); ++i) {
    auto const [a, b] = underlay.links[i];
    if (a >= underlay.nodes || b >= underlay.nodes)
      return no_node("link " + std::to_string(i), std::max(a, b), underlay.nodes);
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }
  SquareMatrix distances(static_cast<std::uint32_t>(workers.size()));
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    auto const hops = hops_from(workers[i], neighbours);
    for (std::uint32_t j = 0; j < workers.size(); ++j) {
      auto const pair = [&] { return "workers " + std::to_string(i) + " and " + std::to_string(j); };
      if (hops[workers[j]] == unreached)
        return bad("no path between " + pair() + " in the underlay; expected a connected network");
      if (i != j && workers[i] == workers[j])
        return bad(pair() + " are both node " + std::to_string(workers[i]) + "; expected every worker once");
      distances.at(i, j) = hops[workers[j]];
    }
  }
  return distances;
}

}  // namespace chorus::topology
