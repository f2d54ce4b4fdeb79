// Powers of two, and folding of other numbers of ranks.
#pragma once

#include <bit>
#include <cstdint>

#include "collectives/plan/algorithm.hpp"

namespace chorus::algorithms {

// Returns ceil(log2 p), the number of rounds in which data of one rank reaches p ranks. p >= 1.
[[nodiscard]] constexpr std::uint32_t doublings(std::uint32_t p) {
  return static_cast<std::uint32_t>(std::bit_width(p - 1));
}

// For Algorithm::summation of algorithms that add in pairs if the number of ranks is a power of two.
[[nodiscard]] inline plan::Summation pairs_of_powers(plan::Spec const& spec) {
  return std::has_single_bit(spec.ranks) ? plan::Summation::in_pairs : plan::Summation::any;
}

// p ranks folded to the greatest power of two: in each of the first pairs (0, 1), (2, 3), ... one rank sits out, and
// the other one stands for both. Active ranks are numbered by place, in rank order, so the places [a, b) stand for the
// ranks [first(a), first(b)).
struct Fold {
  // In each pair the even rank sits out, except for the rank `kept`. p >= 1.
  explicit Fold(std::uint32_t p, plan::Rank kept = 1)
      : power(std::bit_floor(p)), levels(doublings(power)), pairs(p - power), kept_(kept) {}

  [[nodiscard]] bool is_paired(plan::Rank rank) const { return rank < 2 * pairs; }
  [[nodiscard]] bool sits_out(plan::Rank rank) const { return is_paired(rank) && rank_at(rank / 2) != rank; }
  [[nodiscard]] std::uint32_t place(plan::Rank rank) const { return is_paired(rank) ? rank / 2 : rank - pairs; }
  [[nodiscard]] plan::Rank rank_at(std::uint32_t place) const {
    if (place >= pairs) return place + pairs;
    return place == kept_ / 2 ? kept_ : 2 * place + 1;
  }
  [[nodiscard]] plan::Rank first(std::uint32_t place) const { return place < pairs ? 2 * place : place + pairs; }
  // Returns the other rank of the pair.
  [[nodiscard]] static plan::Rank partner(plan::Rank rank) { return rank ^ 1u; }

  std::uint32_t power, levels, pairs;  // p = power + pairs

 private:
  plan::Rank kept_;
};

}  // namespace chorus::algorithms
