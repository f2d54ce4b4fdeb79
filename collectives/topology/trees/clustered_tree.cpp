#include "collectives/topology/trees/clustered_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

#include "collectives/topology/trees/kernighan_lin.hpp"

namespace chorus::topology {
namespace {

using Members = std::vector<std::uint32_t>;

// Limit for the pairs of workers that are tried for exchanges.
constexpr std::size_t max_weighings = 1'000'000;

// A tree over p workers is kicked this / p times.
constexpr std::size_t kicks_by_worker = 1024;

class Builder {
 public:
  Builder(SquareMatrix const& ties, SquareMatrix const& merits, std::uint32_t ways)
      : ties_(ties), merits_(merits), ways_(ways), parent_(ties.size()), children_(ties.size()), below_(ties.size()) {}

  std::vector<std::uint32_t> build(std::uint32_t root) {
    parent_[root] = root;
    Members all(ties_.size());
    std::iota(all.begin(), all.end(), 0);
    grow(std::move(all), root);
    count_below(root);
    improve(root);
    for (auto kicks = kicks_by_worker / ties_.size(); kicks > 0; --kicks) kick(root);
    return std::move(parent_);
  }

 private:
  void grow(Members cluster, std::uint32_t root) {
    for (auto parts = std::size_t{ways_}; parts > 1 && cluster.size() > 1; --parts) {
      auto const part = cut_off(ties_, cluster, root, std::max<std::size_t>(cluster.size() / parts, 1));
      auto const head = *std::max_element(part.begin(), part.end(),
                                          [&](auto a, auto b) { return merits_.at(root, a) < merits_.at(root, b); });
      hang(head, root);
      std::erase_if(cluster, [&](auto member) { return std::binary_search(part.begin(), part.end(), member); });
      grow(part, head);
    }
    if (cluster.size() > 1) grow(std::move(cluster), root);
  }

  void hang(std::uint32_t worker, std::uint32_t parent) {
    parent_[worker] = parent;
    children_[parent].push_back(worker);
  }

  double merit_at(std::uint32_t place, std::uint32_t worker, std::uint32_t other_place, std::uint32_t other) const {
    auto const who = [&](std::uint32_t at) { return at == place ? worker : at == other_place ? other : at; };
    auto sum = merits_.at(worker, who(parent_[place]));
    for (auto const child : children_[place]) sum += merits_.at(worker, who(child));
    return sum;
  }

  // Gain in merit if two workers, neither of them the root, change places. A link between the two is counted twice in
  // both sums, so it cancels out.
  double gain_of_exchange(std::uint32_t a, std::uint32_t b) const {
    return merit_at(a, b, b, a) + merit_at(b, a, a, b) - merit_at(a, a, b, b) - merit_at(b, b, a, a);
  }

  void exchange(std::uint32_t a, std::uint32_t b) {
    auto const renamed = [&](std::uint32_t at) { return at == a ? b : at == b ? a : at; };
    for (auto& parent : parent_) parent = renamed(parent);
    std::swap(parent_[a], parent_[b]);
    std::swap(children_[a], children_[b]);
    std::swap(below_[a], below_[b]);
    for (auto& children : children_)
      for (auto& child : children) child = renamed(child);
  }

  // Gain if two workers change parents, each with its whole subtree. Only for subtrees of one size, which have one
  // shape; neither contains the other.
  double gain_of_rehanging(std::uint32_t a, std::uint32_t b) const {
    if (below_[a] != below_[b]) return 0;
    return merits_.at(a, parent_[b]) + merits_.at(b, parent_[a]) - merits_.at(a, parent_[a]) -
           merits_.at(b, parent_[b]);
  }

  void rehang(std::uint32_t a, std::uint32_t b) {
    std::replace(children_[parent_[a]].begin(), children_[parent_[a]].end(), a, b);
    std::replace(children_[parent_[b]].begin(), children_[parent_[b]].end(), b, a);
    std::swap(parent_[a], parent_[b]);
  }

  std::uint32_t count_below(std::uint32_t worker) {
    for (auto const child : children_[worker]) below_[worker] += 1 + count_below(child);
    return below_[worker];
  }

  double merit() const {
    auto sum = 0.0;
    for (std::uint32_t worker = 0; worker < parent_.size(); ++worker)
      if (parent_[worker] != worker) sum += merits_.at(worker, parent_[worker]);
    return sum;
  }

  // Leaves a local optimum: makes a few exchanges at a loss, improves again, and undoes all unless the result is
  // better.
  void kick(std::uint32_t root) {
    auto const before = merit();
    auto const saved = std::tuple(parent_, children_, below_);
    for (int exchanges = 0; exchanges < 3; ++exchanges) {
      auto const a = static_cast<std::uint32_t>(random_() % ties_.size());
      auto const b = static_cast<std::uint32_t>(random_() % ties_.size());
      if (a != root && b != root && a != b) exchange(a, b);
    }
    improve(root);
    if (merit() <= before) std::tie(parent_, children_, below_) = saved;
  }

  void improve(std::uint32_t root) {
    auto const size = ties_.size();
    auto largest = 0.0;
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < i; ++j) largest = std::max(largest, std::abs(merits_.at(i, j)));
    auto const noise = 1e-9 * largest;
    std::size_t weighings = 0;
    for (bool improved = true; improved && weighings < max_weighings;) {
      improved = false;
      for (std::uint32_t a = 0; a < size; ++a)
        for (std::uint32_t b = a + 1; b < size && a != root; ++b) {
          if (b == root) continue;
          ++weighings;
          if (gain_of_rehanging(a, b) > noise) {
            rehang(a, b);
            improved = true;
          } else if (gain_of_exchange(a, b) > noise) {
            exchange(a, b);
            improved = true;
          }
        }
    }
  }

  SquareMatrix const& ties_;
  SquareMatrix const& merits_;
  std::uint32_t ways_;
  std::vector<std::uint32_t> parent_;
  std::vector<Members> children_;
  std::minstd_rand random_{1};        // the same for every tree, so that equal links give equal trees
  std::vector<std::uint32_t> below_;  // size of the subtree of each worker
};

}  // namespace

std::vector<std::uint32_t> clustered_tree(SquareMatrix const& ties, SquareMatrix const& merits, std::uint32_t root,
                                          std::uint32_t ways) {
  return Builder(ties, merits, ways).build(root);
}

}  // namespace chorus::topology
