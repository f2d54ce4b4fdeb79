#include "collectives/topology/trees/link_trees.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "collectives/core/errc.hpp"
#include "collectives/topology/dgx1.hpp"
#include "collectives/topology/trees/exhaustive_tree.hpp"
#include "collectives/topology/trees/kernighan_lin.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

using Ranks = std::vector<plan::Rank>;

Ranks all(std::uint32_t size) {
  Ranks ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

SquareMatrix bandwidths(LinkMatrix const& links) {
  SquareMatrix weights(links.size());
  for (std::uint32_t i = 0; i < links.size(); ++i)
    for (std::uint32_t j = 0; j < links.size(); ++j)
      if (i != j) weights.at(i, j) = links.both_ways(i, j).bandwidth_gbyte_per_s;
  return weights;
}

LinkMatrix matrix_of(SquareMatrix const& weights) {
  LinkMatrix::Rows bandwidth(weights.size());
  for (std::uint32_t i = 0; i < weights.size(); ++i)
    bandwidth[i].assign(weights.row(i), weights.row(i) + weights.size());
  return LinkMatrix::make(bandwidth, LinkMatrix::Rows(weights.size(), std::vector(weights.size(), 0.0))).value();
}

// A symmetric matrix with values drawn at random from `of`.
SquareMatrix random_weights(std::uint32_t size, std::vector<double> const& of, std::minstd_rand& random) {
  SquareMatrix weights(size);
  for (std::uint32_t i = 0; i < size; ++i)
    for (std::uint32_t j = 0; j < i; ++j) weights.at(i, j) = weights.at(j, i) = of[random() % of.size()];
  return weights;
}

double weight_of(SquareMatrix const& weights, Ranks const& parent) {
  auto sum = 0.0;
  for (plan::Rank rank = 0; rank < parent.size(); ++rank)
    if (parent[rank] != rank) sum += weights.at(rank, parent[rank]);
  return sum;
}

void penalise(SquareMatrix& weights, Ranks const& parent, double penalty) {
  for (plan::Rank rank = 0; rank < parent.size(); ++rank)
    if (parent[rank] != rank)
      weights.at(rank, parent[rank]) = weights.at(parent[rank], rank) = weights.at(rank, parent[rank]) * penalty;
}

std::uint32_t levels(std::uint32_t workers, std::uint32_t ways) {
  auto depth = std::uint32_t{0};
  for (auto reach = std::uint64_t{1}; reach < workers; reach *= ways) ++depth;
  return depth;
}

// True if the tree spans all workers from the root, is no deeper than the levels, and no worker has too many children.
bool is_balanced(Ranks const& parent, plan::Rank root, std::uint32_t ways) {
  auto const size = static_cast<std::uint32_t>(parent.size());
  std::vector<std::uint32_t> children(size);
  for (plan::Rank rank = 0; rank < size; ++rank) {
    if ((parent[rank] == rank) != (rank == root)) return false;
    auto depth = std::uint32_t{0};
    for (auto at = rank; at != root; at = parent[at])
      if (++depth > levels(size, ways)) return false;
    if (rank != root) ++children[parent[rank]];
  }
  return *std::max_element(children.begin(), children.end()) <= (ways - 1) * levels(size, ways);
}

// Visits all balanced binary trees: an independent, slow definition of balanced.
void for_each_tree(Ranks const& cluster, plan::Rank root, Ranks& parent, std::function<void()> const& visit) {
  if (cluster.size() == 1) return visit();
  for (std::uint32_t chosen = 0; chosen < 1u << cluster.size(); ++chosen) {
    Ranks kept, off;
    for (std::size_t i = 0; i < cluster.size(); ++i) (chosen >> i & 1 ? off : kept).push_back(cluster[i]);
    if (std::max(kept.size(), off.size()) - std::min(kept.size(), off.size()) > 1) continue;
    if (std::find(kept.begin(), kept.end(), root) == kept.end()) continue;
    for (auto const head : off) {
      parent[head] = root;
      for_each_tree(off, head, parent, [&] { for_each_tree(kept, root, parent, visit); });
    }
  }
}

double greatest_by_brute_force(SquareMatrix const& weights, plan::Rank root) {
  Ranks parent(weights.size(), root);
  auto greatest = -std::numeric_limits<double>::infinity();
  for_each_tree(all(weights.size()), root, parent, [&] { greatest = std::max(greatest, weight_of(weights, parent)); });
  return greatest;
}

double slowest_link(LinkMatrix const& links, Ranks const& parent) {
  auto slowest = std::numeric_limits<double>::infinity();
  for (plan::Rank rank = 0; rank < parent.size(); ++rank)
    if (parent[rank] != rank) slowest = std::min(slowest, links.both_ways(rank, parent[rank]).bandwidth_gbyte_per_s);
  return slowest;
}

}  // namespace

TEST_CASE("on the p3.16xlarge every GPU is the root of a tree of NVLinks alone, as heavy as any") {
  auto const links = dgx1_matrix();
  auto const trees = link_trees(links, all(8)).value();
  REQUIRE(trees.size() == 8);
  auto weights = bandwidths(links);
  for (plan::Rank root = 0; root < 8; ++root) {
    auto const& tree = trees[root];
    CHECK(is_balanced(tree.parent, root, 2));
    CHECK(tree.exact);
    CHECK(slowest_link(links, tree.parent) >= 25);
    // The heaviest of the trees without PCI-E, with the links of earlier trees penalised.
    auto merits = weights;
    for (std::uint32_t i = 0; i < 8; ++i)
      for (std::uint32_t j = 0; j < 8; ++j)
        if (links.both_ways(i, (j == i ? (i + 1) % 8 : j)).bandwidth_gbyte_per_s == 10) merits.at(i, j) = -1e4;
    CHECK(tree.weight == doctest::Approx(greatest_by_brute_force(merits, root)).epsilon(1e-12));
    CHECK(tree.weight == doctest::Approx(weight_of(weights, tree.parent)).epsilon(1e-12));
    penalise(weights, tree.parent, 0.7);
  }
}

TEST_CASE("the penalty spreads the trees of the p3.16xlarge over its links") {
  auto const links = dgx1_matrix();
  auto const uses_of_the_busiest_link = [&](double penalty) {
    SquareMatrix uses(8);
    auto busiest = 0.0;
    for (auto const& tree : link_trees(links, all(8), {.penalty = penalty}).value())
      for (plan::Rank rank = 0; rank < 8; ++rank)
        if (tree.parent[rank] != rank)
          busiest = std::max(busiest, ++uses.at(std::min(rank, tree.parent[rank]), std::max(rank, tree.parent[rank])));
    return busiest;
  };
  CHECK(uses_of_the_busiest_link(1) >= 7);
  CHECK(uses_of_the_busiest_link(0.7) <= 6);
}

TEST_CASE("a PCI-E link is used only where no tree does without") {
  // 0 to 3 hang together by NVLinks; 4 has PCI-E alone.
  SquareMatrix weights(5, 10);
  for (std::uint32_t i = 0; i + 1 < 4; ++i) weights.at(i, i + 1) = weights.at(i + 1, i) = 50;
  auto const trees = link_trees(matrix_of(weights), Ranks{0, 1, 2, 3, 4}).value();
  for (plan::Rank root = 0; root < 5; ++root) {
    CHECK(is_balanced(trees[root].parent, root, 2));
    CHECK(slowest_link(matrix_of(weights), trees[root].parent) == 10);
  }
  // Six and seven of the eight GPUs, for which Kernighan-Lin is known to get stuck.
  auto const full = bandwidths(dgx1_matrix());
  for (std::uint32_t const size : {6u, 7u}) {
    SquareMatrix part(size);
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j) part.at(i, j) = full.at(i, j);
    auto merits = part;
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j)
        if (merits.at(i, j) == 10) merits.at(i, j) = -1e4;
    for (plan::Rank root = 0; root < size; ++root) {
      auto const tree = link_trees(matrix_of(part), Ranks{root}).value().front();
      CHECK(weight_of(merits, tree.parent) == greatest_by_brute_force(merits, root));
    }
  }
}

TEST_CASE("the exhaustive search finds what an enumeration of all trees finds") {
  std::minstd_rand random(11);
  for (std::uint32_t size = 1; size <= 8; ++size)
    for (int round = 0; round < (size < 8 ? 20 : 3); ++round) {
      auto const weights = random_weights(size, {1, 2, 3, 5, 8, 13, 21}, random);
      auto const root = static_cast<plan::Rank>(random() % size);
      auto const parent = exhaustive_tree(weights, root, 2);
      CHECK(is_balanced(parent, root, 2));
      CHECK(weight_of(weights, parent) == greatest_by_brute_force(weights, root));
    }
}

TEST_CASE("trees of random matrices are balanced, and exact where few enough") {
  std::minstd_rand random(12);
  for (std::uint32_t ways = 2; ways <= 4; ++ways)
    for (std::uint32_t size = 1; size <= 16; ++size) {
      auto const links = matrix_of(random_weights(size, {1, 2, 3}, random));
      auto const trees =
          link_trees(links, Ranks{0, size - 1, size / 2}, {.ways = ways, .exhaustive_up_to = 16}).value();
      Ranks const roots{0, size - 1, size / 2};
      for (std::size_t i = 0; i < trees.size(); ++i) {
        CHECK(is_balanced(trees[i].parent, roots[i], ways));
        CHECK(trees[i].weight > (size == 1 ? -1 : 0));
        if (size <= (ways == 2 ? max_exhaustive_binary : max_exhaustive_wider)) CHECK(trees[i].exact);
      }
    }
}

TEST_CASE("clustering alone comes close to the exhaustive search") {
  std::minstd_rand random(13);
  auto least = 1.0, sum = 0.0;
  auto count = 0;
  for (std::uint32_t size = 5; size <= 14; ++size)
    for (int round = 0; round < 10; ++round, ++count) {
      auto const links = matrix_of(random_weights(size, {20, 25, 50}, random));
      auto const found = link_trees(links, Ranks{0}, {.exhaustive_up_to = 0}).value().front();
      auto const best = link_trees(links, Ranks{0}, {.exhaustive_up_to = 14}).value().front();
      CHECK(best.exact);
      CHECK(found.weight <= best.weight * (1 + 1e-12));
      CHECK(is_balanced(found.parent, 0, 2));
      least = std::min(least, found.weight / best.weight);
      sum += found.weight / best.weight;
    }
  CHECK(least >= 0.75);
  CHECK(sum / count >= 0.95);
}

TEST_CASE("many workers get a tree that keeps to their hosts") {
  std::vector<Locality> workers;
  for (int i = 0; i < 64; ++i) workers.push_back({"", "", "", "h" + std::to_string(i % 8)});
  LevelLinks const links{{{1e-6, 16}, {1e-5, 1}, {1e-5, 1}, {1e-5, 1}, {1e-5, 1}}};
  auto const tree = link_trees(LinkMatrix::from_localities(workers, links).value(), Ranks{5}).value().front();
  CHECK(is_balanced(tree.parent, 5, 2));
  CHECK(tree.weight == 56 * 16 + 7 * 1);
  CHECK(tree.exact);  // no spanning tree is heavier
}

TEST_CASE("a thousand workers get a tree of the heaviest links") {
  std::minstd_rand random(14);
  auto const links = matrix_of(random_weights(1000, {10, 11, 12, 25, 26, 50}, random));
  auto const tree = link_trees(links, Ranks{999}).value().front();
  CHECK(is_balanced(tree.parent, 999, 2));
  CHECK(tree.weight > 999 * 49);
}

TEST_CASE("the same links give the same trees") {
  std::minstd_rand random(15);
  for (std::uint32_t const size : {7u, 16u, 40u}) {
    auto const links = matrix_of(random_weights(size, {1, 2}, random));
    auto const once = link_trees(links, all(size)).value();
    auto const twice = link_trees(links, all(size)).value();
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(once[i].parent == twice[i].parent);
  }
}

TEST_CASE("impossible options are refused") {
  auto const links = dgx1_matrix();
  CHECK(link_trees(links, Ranks{0, 8}).error().code == PlanErrc::rank_out_of_range);
  CHECK(link_trees(links, Ranks{0, 8}).error().detail == "root 8; expected 0 to 7");
  CHECK(link_trees(links, Ranks{0}, {.ways = 1}).error().code == PlanErrc::bad_parameter);
  for (auto const penalty : {0.0, -1.0, 1.01, std::numeric_limits<double>::quiet_NaN()})
    CHECK(link_trees(links, Ranks{0}, {.penalty = penalty}).error().code == PlanErrc::bad_parameter);
  CHECK(link_trees(links, {}).value().empty());
}

TEST_CASE("Kernighan-Lin finds two clusters that hang together by one link") {
  // MXNet's test graph: {0, 1, 4, 5} and {2, 3, 6, 7}, joined by 2 - 5.
  SquareMatrix weights(8);
  for (auto const& [a, b] : {std::pair{0u, 1u},
                             {0u, 4u},
                             {0u, 5u},
                             {1u, 4u},
                             {1u, 5u},
                             {4u, 5u},
                             {2u, 5u},
                             {2u, 3u},
                             {2u, 6u},
                             {2u, 7u},
                             {3u, 6u},
                             {3u, 7u},
                             {6u, 7u}})
    weights.at(a, b) = weights.at(b, a) = 1;
  for (plan::Rank root = 0; root < 8; ++root) {
    auto const near_zero = root == 0 || root == 1 || root == 4 || root == 5;
    CHECK(cut_off(weights, all(8), root, 4) == (near_zero ? Ranks{2, 3, 6, 7} : Ranks{0, 1, 4, 5}));
  }
}

TEST_CASE("no exchange of two workers makes a cut of Kernighan-Lin lighter") {
  std::minstd_rand random(16);
  for (int round = 0; round < 200; ++round) {
    auto const size = static_cast<std::uint32_t>(2 + random() % 12);
    auto const weights = random_weights(size, {1, 2, 3, 5, 8, 13, 21}, random);
    auto const root = static_cast<plan::Rank>(random() % size);
    auto const off = cut_off(weights, all(size), root, 1 + random() % (size - 1));
    std::vector<bool> is_off(size);
    for (auto const worker : off) is_off[worker] = true;
    CHECK_FALSE(is_off[root]);
    auto const between = [&] {
      auto sum = 0.0;
      for (std::uint32_t i = 0; i < size; ++i)
        for (std::uint32_t j = 0; j < size; ++j) sum += is_off[i] && !is_off[j] ? weights.at(i, j) : 0;
      return sum;
    };
    auto const found = between();
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j) {
        if (!is_off[i] || is_off[j] || j == root) continue;
        is_off[i] = false, is_off[j] = true;
        CHECK(between() >= found);
        is_off[i] = true, is_off[j] = false;
      }
  }
}
