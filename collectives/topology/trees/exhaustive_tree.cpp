#include "collectives/topology/trees/exhaustive_tree.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace chorus::topology {
namespace {

using Set = std::uint32_t;  // bit i: worker i

// Calls visit(subset) for every subset of `of` with `count` members, in a fixed order, until it returns true. Counts up
// in the compressed numbering of `of`'s members (Gosper) and spreads the bits by two tables.
template <class Visit>
void for_each_subset(Set of, int count, Visit visit) {
  auto const members = std::popcount(of);
  std::array<Set, 256> low, high;  // only written entries are read
  auto const spread = [&](std::array<Set, 256>& table, int first, int bits) {
    auto left = of;
    table[0] = 0;
    for (int skip = 0; skip < first; ++skip) left &= left - 1;
    for (int bit = 0; bit < bits; ++bit, left &= left - 1)
      for (Set value = 0; value < (1u << bit); ++value) table[value | 1u << bit] = table[value] | (left & -left);
  };
  spread(low, 0, std::min(members, 8));
  spread(high, 8, std::max(members - 8, 0));
  auto const end = Set{1} << members;
  for (auto chosen = (Set{1} << count) - 1; chosen < end;) {
    if (visit(low[chosen & 255] | high[chosen >> 8])) return;
    auto const lowest = chosen & -chosen;
    auto const carried = chosen + lowest;
    chosen = carried | ((chosen ^ carried) / lowest >> 2);
  }
}

class Search {
 public:
  Search(SquareMatrix const& merits, std::uint32_t ways)
      : merits_(merits),
        size_(merits.size()),
        ways_(static_cast<int>(std::min(ways, std::max(size_, 2u)))),
        hung_(std::size_t{size_} << size_, unknown),
        parted_(static_cast<std::size_t>(ways_ - 1), std::vector<double>(std::size_t{size_} << size_, unknown)),
        parent_(size_) {}

  std::vector<std::uint32_t> tree(std::uint32_t root) {
    parent_[root] = root;
    settle((Set{1} << size_) - 1, root, ways_);
    return parent_;
  }

 private:
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  // Entries of one root are adjacent, because a search stays with one root for many sets.
  std::size_t index(Set set, std::uint32_t root) const { return (std::size_t{root} << size_) + set; }

  // The most merit within `set` below `root` if it is to be cut into `parts` parts. One part means the root's own part,
  // which is cut again.
  double below(Set set, std::uint32_t root, int parts) {
    if ((set & (set - 1)) == 0) return 0;
    if (parts == 1) parts = ways_;
    auto const at = index(set, root);
    auto& memory = parted_[static_cast<std::size_t>(parts - 2)];
    if (!std::isnan(memory[at])) return memory[at];
    auto best = -std::numeric_limits<double>::infinity();
    each_part(set, root, parts, [&](Set part) {
      best = std::max(best, below(set & ~part, root, parts - 1) + hanging(part, root));
      return false;
    });
    return memory[at] = best;
  }

  // The most merit of `part`, including the link by which it hangs from `root`.
  double hanging(Set part, std::uint32_t root) {
    auto const at = index(part, root);
    if (!std::isnan(hung_[at])) return hung_[at];
    auto best = -std::numeric_limits<double>::infinity();
    for (auto left = part; left != 0; left &= left - 1) best = std::max(best, headed(part, root, left));
    return hung_[at] = best;
  }

  double headed(Set part, std::uint32_t root, Set heads) {
    auto const head = static_cast<std::uint32_t>(std::countr_zero(heads));
    return merits_.at(root, head) + below(part, head, ways_);
  }

  // Visits the parts that may be cut off: as large as the smallest or the largest of `parts` equal ones.
  template <class Visit>
  void each_part(Set set, std::uint32_t root, int parts, Visit visit) {
    auto const members = std::popcount(set);
    auto const small = members / parts, large = (members + parts - 1) / parts;
    auto const others = set & ~(Set{1} << root);
    auto stop = false;
    auto const once = [&](Set part) { return stop = visit(part); };
    if (small > 0) for_each_subset(others, small, once);
    if (large != small && large < members && !stop) for_each_subset(others, large, once);
  }

  // Records the parents of a tree with the most merit. Its sums are those of below(), so exact comparison finds it.
  void settle(Set set, std::uint32_t root, int parts) {
    if ((set & (set - 1)) == 0) return;
    if (parts == 1) parts = ways_;
    auto const best = below(set, root, parts);
    auto chosen = Set{0};
    each_part(set, root, parts, [&](Set part) {
      chosen = part;
      return below(set & ~part, root, parts - 1) + hanging(part, root) == best;
    });
    auto heads = chosen;
    while (headed(chosen, root, heads) != hanging(chosen, root)) heads &= heads - 1;
    auto const head = static_cast<std::uint32_t>(std::countr_zero(heads));
    parent_[head] = root;
    settle(chosen, head, ways_);
    settle(set & ~chosen, root, parts - 1);
  }

  SquareMatrix const& merits_;
  std::uint32_t size_;
  int ways_;
  std::vector<double> hung_;                 // hanging(part, root)
  std::vector<std::vector<double>> parted_;  // below(set, root, parts), for parts >= 2
  std::vector<std::uint32_t> parent_;
};

}  // namespace

std::vector<std::uint32_t> exhaustive_tree(SquareMatrix const& merits, std::uint32_t root, std::uint32_t ways) {
  return Search(merits, ways).tree(root);
}

}  // namespace chorus::topology
