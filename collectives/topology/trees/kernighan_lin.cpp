#include "collectives/topology/trees/kernighan_lin.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chorus::topology {
namespace {

constexpr std::size_t look_at_all_up_to = 64;  // members; in larger clusters a pass is limited:
constexpr std::size_t promising = 16;          // members of each side that are tried for an exchange
constexpr std::size_t max_exchanges = 64;
constexpr int max_passes = 6;
constexpr double rounding = 1e-9;

// The two parts of one cluster; workers are identified by their index in the members.
class Cut {
 public:
  Cut(SquareMatrix const& weights, std::span<std::uint32_t const> members, std::uint32_t root)
      : weights_(weights), members_(members), off_(members.size()), gain_(members.size()), locked_(members.size()) {
    root_ = static_cast<std::size_t>(std::find(members.begin(), members.end(), root) - members.begin());
  }

  // A part of `size` members that grows from `seed` by adding the member with the greatest tie to it; never the root.
  std::vector<bool> grow(std::size_t seed, std::size_t size) const {
    std::vector<bool> part(members_.size());
    std::vector<double> tie(members_.size());
    auto next = seed;
    for (std::size_t count = 1;; ++count) {
      part[next] = true;
      if (count == size) return part;
      for (std::size_t i = 0; i < members_.size(); ++i) tie[i] += weight(next, i);
      auto best = members_.size();
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (!part[i] && i != root_ && (best == members_.size() || tie[i] > tie[best])) best = i;
      next = best;
    }
  }

  std::size_t root() const { return root_; }
  std::size_t least_tied_to_root() const {
    auto best = members_.size();
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (i != root_ && (best == members_.size() || weight(root_, i) <= weight(root_, best))) best = i;
    return best;
  }

  void start(std::vector<bool> off) {
    off_ = std::move(off);
    std::fill(gain_.begin(), gain_.end(), 0);
    for (std::size_t i = 0; i < members_.size(); ++i)
      for (std::size_t j = 0; j < members_.size(); ++j) gain_[i] += off_[i] == off_[j] ? -weight(i, j) : weight(i, j);
  }
  std::vector<bool> const& off() const { return off_; }

  double between() const {
    auto sum = 0.0;
    for (std::size_t i = 0; i < members_.size(); ++i)
      for (std::size_t j = 0; j < members_.size(); ++j)
        if (off_[i] && !off_[j]) sum += weight(i, j);
    return sum;
  }

  void improve() {
    for (int pass = 0; pass < max_passes && improve_once(); ++pass) {}
  }

 private:
  struct Pair {
    std::size_t kept = 0, off = 0;
    double gain = 0;
  };

  double weight(std::size_t i, std::size_t j) const { return i == j ? 0 : weights_.at(members_[i], members_[j]); }

  // Exchanges pairs, best first and each worker once, also at a loss; then undoes those after the best moment.
  bool improve_once() {
    std::fill(locked_.begin(), locked_.end(), false);
    locked_[root_] = true;
    auto const most = members_.size() <= look_at_all_up_to ? members_.size() : max_exchanges;
    std::vector<Pair> done;
    std::size_t best_count = 0;
    auto sum = 0.0, best = 0.0, volume = 0.0;
    for (auto const gain : gain_) volume += std::abs(gain);
    for (Pair pair{}; done.size() < most && next_pair(pair);) {
      exchange(pair);
      done.push_back(pair);
      sum += pair.gain;
      if (sum > best + rounding * volume) {
        best = sum;
        best_count = done.size();
      }
    }
    for (; done.size() > best_count; done.pop_back()) exchange({done.back().off, done.back().kept, 0});
    return best_count > 0;
  }

  std::vector<std::size_t> candidates(bool off) const {
    std::vector<std::size_t> side;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (off_[i] == off && !locked_[i]) side.push_back(i);
    if (members_.size() > look_at_all_up_to && side.size() > promising) {
      std::nth_element(side.begin(), side.begin() + promising, side.end(),
                       [&](auto a, auto b) { return gain_[a] > gain_[b] || (gain_[a] == gain_[b] && a < b); });
      side.resize(promising);
      std::sort(side.begin(), side.end());  // nth_element leaves them in any order
    }
    return side;
  }

  bool next_pair(Pair& best) const {
    best.gain = -std::numeric_limits<double>::infinity();
    auto const of_off = candidates(true);
    for (auto const kept : candidates(false))
      for (auto const off : of_off) {
        auto const gain = gain_[kept] + gain_[off] - 2 * weight(kept, off);
        if (gain > best.gain) best = {kept, off, gain};
      }
    return best.gain > -std::numeric_limits<double>::infinity();
  }

  void exchange(Pair const& pair) {
    locked_[pair.kept] = locked_[pair.off] = true;
    auto const between = 2 * weight(pair.kept, pair.off);
    auto const kept = between - gain_[pair.kept], off = between - gain_[pair.off];
    for (std::size_t i = 0; i < members_.size(); ++i) {
      auto const change = 2 * (weight(pair.kept, i) - weight(pair.off, i));
      gain_[i] += off_[i] ? -change : change;
    }
    gain_[pair.kept] = kept;
    gain_[pair.off] = off;
    off_[pair.kept] = true;
    off_[pair.off] = false;
  }

  SquareMatrix const& weights_;
  std::span<std::uint32_t const> members_;
  std::size_t root_ = 0;
  std::vector<bool> off_;     // is in the part that is cut off
  std::vector<double> gain_;  // reduction of the cut's weight if this member alone changes sides
  std::vector<bool> locked_;
};

}  // namespace

std::vector<std::uint32_t> cut_off(SquareMatrix const& weights, std::span<std::uint32_t const> members,
                                   std::uint32_t root, std::size_t take) {
  Cut cut(weights, members, root);
  // Two starts: a part grown far from the root, and the complement of a part grown around the root.
  auto around_root = cut.grow(cut.root(), members.size() - take);
  around_root.flip();
  cut.start(std::move(around_root));
  cut.improve();
  auto const best = cut.off();
  auto const least = cut.between();
  cut.start(cut.grow(cut.least_tied_to_root(), take));
  cut.improve();
  auto const& off = cut.between() < least * (1 - rounding) ? cut.off() : best;
  std::vector<std::uint32_t> part;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (off[i]) part.push_back(members[i]);
  return part;
}

}  // namespace chorus::topology
