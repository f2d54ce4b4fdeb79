#include "collectives/topology/clustered_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/topology/kernighan_lin.hpp"

namespace chorus::topology {
namespace {

using Members = std::vector<std::uint32_t>;

// Exchanges of two workers that are weighed at the most: about 50 ms. Trees of up to 256 workers never need so many.
constexpr std::size_t max_weighings = 2'000'000;

class Builder {
 public:
  Builder(SquareMatrix const& ties, SquareMatrix const& merits, std::uint32_t ways)
      : ties_(ties), merits_(merits), ways_(ways), parent_(ties.size()), children_(ties.size()) {}

  std::vector<std::uint32_t> build(std::uint32_t root) {
    parent_[root] = root;
    Members all(ties_.size());
    std::iota(all.begin(), all.end(), 0);
    grow(std::move(all), root);
    exchange_all(root);
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

  // The gain in merit if two workers, neither of them the root, change places. A link between the two is counted twice
  // on both sides, and stays.
  double gain(std::uint32_t a, std::uint32_t b) const {
    return merit_at(a, b, b, a) + merit_at(b, a, a, b) - merit_at(a, a, b, b) - merit_at(b, b, a, a);
  }

  void exchange(std::uint32_t a, std::uint32_t b) {
    auto const renamed = [&](std::uint32_t at) { return at == a ? b : at == b ? a : at; };
    for (auto& parent : parent_) parent = renamed(parent);
    std::swap(parent_[a], parent_[b]);
    std::swap(children_[a], children_[b]);
    for (auto& children : children_)
      for (auto& child : children) child = renamed(child);
  }

  void exchange_all(std::uint32_t root) {
    auto const size = ties_.size();
    auto largest = 0.0;
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < i; ++j) largest = std::max(largest, std::abs(merits_.at(i, j)));
    std::size_t weighings = 0;
    for (bool improved = true; improved && weighings < max_weighings;) {
      improved = false;
      for (std::uint32_t a = 0; a < size; ++a)
        for (std::uint32_t b = a + 1; b < size && a != root; ++b) {
          if (b == root) continue;
          ++weighings;
          if (gain(a, b) <= 1e-9 * largest) continue;
          exchange(a, b);
          improved = true;
        }
    }
  }

  SquareMatrix const& ties_;
  SquareMatrix const& merits_;
  std::uint32_t ways_;
  std::vector<std::uint32_t> parent_;
  std::vector<Members> children_;
};

}  // namespace

std::vector<std::uint32_t> clustered_tree(SquareMatrix const& ties, SquareMatrix const& merits, std::uint32_t root,
                                          std::uint32_t ways) {
  return Builder(ties, merits, ways).build(root);
}

}  // namespace chorus::topology
