#include "collectives/topology/trees/link_trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "collectives/core/errc.hpp"
#include "collectives/topology/trees/clustered_tree.hpp"
#include "collectives/topology/trees/exhaustive_tree.hpp"

namespace chorus::topology {
namespace {

constexpr double slow_factor = 3;
constexpr double rounding = 1e-9;

// A spanning tree of greatest weight by Prim's algorithm: its weight, and for all pairs the least weight on the path
// between them, which no other path exceeds.
struct Spanning {
  double weight = 0;
  SquareMatrix widest;
};

Spanning heaviest_spanning_tree(SquareMatrix const& weights) {
  auto const size = weights.size();
  Spanning spanning{0, SquareMatrix(size)};
  std::vector<double> best(size, -std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> from(size), inside{0};
  std::vector<bool> is_inside(size);
  is_inside[0] = true;
  while (inside.size() < size) {
    for (std::uint32_t worker = 0; worker < size; ++worker)
      if (!is_inside[worker] && weights.at(inside.back(), worker) > best[worker]) {
        best[worker] = weights.at(inside.back(), worker);
        from[worker] = inside.back();
      }
    auto next = size;
    for (std::uint32_t worker = 0; worker < size; ++worker)
      if (!is_inside[worker] && (next == size || best[worker] > best[next])) next = worker;
    for (auto const other : inside) {
      auto const narrowest =
          other == from[next] ? best[next] : std::min(best[next], spanning.widest.at(other, from[next]));
      spanning.widest.at(other, next) = spanning.widest.at(next, other) = narrowest;
    }
    spanning.weight += best[next];
    is_inside[next] = true;
    inside.push_back(next);
  }
  return spanning;
}

double sum_over_links(SquareMatrix const& values, std::vector<plan::Rank> const& parent) {
  auto sum = 0.0;
  for (plan::Rank rank = 0; rank < parent.size(); ++rank)
    if (parent[rank] != rank) sum += values.at(rank, parent[rank]);
  return sum;
}

// The weights of the links after the trees built so far.
class Budget {
 public:
  explicit Budget(LinkMatrix const& links) : weights_(links.size()), fine_(links.size()) {
    auto const size = links.size();
    auto largest = 0.0;
    for (std::uint32_t a = 0; a < size; ++a)
      for (std::uint32_t b = 0; b < a; ++b) {
        weights_.at(a, b) = weights_.at(b, a) = links.both_ways(a, b).bandwidth_gbyte_per_s;
        largest = std::max(largest, weights_.at(a, b));
      }
    // More than the weight of any tree, so that no weight makes up for one slow link.
    auto const fine = 2 * largest * size;
    auto const detours = heaviest_spanning_tree(weights_).widest;
    for (std::uint32_t a = 0; a < size; ++a)
      for (std::uint32_t b = 0; b < size; ++b)
        if (slow_factor * weights_.at(a, b) < detours.at(a, b)) fine_.at(a, b) = fine;
  }

  SquareMatrix const& weights() const { return weights_; }

  // The matrix that a tree maximises.
  SquareMatrix merits() const {
    auto merits = weights_;
    for (std::uint32_t a = 0; a < merits.size(); ++a)
      for (std::uint32_t b = 0; b < merits.size(); ++b) merits.at(a, b) -= fine_.at(a, b);
    return merits;
  }

  void use(std::vector<plan::Rank> const& parent, double penalty) {
    for (plan::Rank rank = 0; rank < parent.size(); ++rank)
      if (parent[rank] != rank)
        weights_.at(rank, parent[rank]) = weights_.at(parent[rank], rank) = penalty * weights_.at(rank, parent[rank]);
  }

 private:
  SquareMatrix weights_;
  SquareMatrix fine_;  // penalty of a slow link, 0 for others
};

Status check(LinkTreeOptions const& options, std::span<plan::Rank const> roots, std::uint32_t workers) {
  if (options.ways < 2)
    return Error(PlanErrc::bad_parameter,
                 "a tree cannot cut clusters into " + std::to_string(options.ways) + " parts; expected at least 2");
  if (!(options.penalty > 0 && options.penalty <= 1))
    return Error(PlanErrc::bad_parameter, "a link usage penalty of " + std::to_string(options.penalty) +
                                              "; expected more than 0 and at most 1 (1 is none)");
  for (auto const root : roots)
    if (root >= workers)
      return Error(PlanErrc::rank_out_of_range,
                   "root " + std::to_string(root) + "; expected 0 to " + std::to_string(workers - 1));
  return ok();
}

// Kernighan-Lin first. If its tree is as heavy as a spanning tree of any shape, none is better. Otherwise it may be
// stuck in a local optimum, and few enough workers are searched exhaustively.
LinkTree best_tree(Budget const& budget, plan::Rank root, LinkTreeOptions const& options) {
  auto const merits = budget.merits();
  LinkTree tree;
  tree.parent = clustered_tree(budget.weights(), merits, root, options.ways);
  auto const most = heaviest_spanning_tree(merits).weight;
  tree.exact = sum_over_links(merits, tree.parent) >= most - rounding * std::abs(most);
  auto const limit = options.ways == 2 ? max_exhaustive_binary : max_exhaustive_wider;
  if (!tree.exact && merits.size() <= std::min(limit, options.exhaustive_up_to)) {
    tree.parent = exhaustive_tree(merits, root, options.ways);
    tree.exact = true;
  }
  tree.weight = sum_over_links(budget.weights(), tree.parent);
  return tree;
}

}  // namespace

Result<std::vector<LinkTree>> link_trees(LinkMatrix const& links, std::span<plan::Rank const> roots,
                                         LinkTreeOptions options) {
  if (auto usable = check(options, roots, links.size()); !usable) return usable.error();
  Budget budget(links);
  std::vector<LinkTree> trees;
  for (auto const root : roots) {
    trees.push_back(best_tree(budget, root, options));
    budget.use(trees.back().parent, options.penalty);
  }
  return trees;
}

}  // namespace chorus::topology
