// The links between all pairs of workers: derived from levels of locality, refined by measurements, or given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/core/result.hpp"
#include "collectives/topology/link.hpp"
#include "collectives/topology/square_matrix.hpp"

namespace chorus::topology {

// Limit for matrices, which have one entry per ordered pair: 64 MiB. Larger groups are ordered by locality alone
// (orders/order.hpp).
inline constexpr std::uint32_t max_matrix_workers = 2048;

// A value: n workers and the link from each to each other. Every link is within the limits of link.hpp.
class LinkMatrix {
 public:
  using Rows = std::vector<std::vector<double>>;

  // bandwidth_gbyte_per_s[i][j] and latency_s[i][j] are those of the link from i to j; the diagonals are not read.
  // Errors: PlanErrc::bad_parameter for no or too many workers, a matrix that is not square, a missing (0), negative,
  // infinite or NaN link, naming the pair, the value and what is expected.
  [[nodiscard]] static Result<LinkMatrix> make(Rows const& bandwidth_gbyte_per_s, Rows const& latency_s);

  // Uses for each pair the link of the innermost level that the two share. Errors: PlanErrc::bad_parameter, as for
  // make(), naming the level.
  [[nodiscard]] static Result<LinkMatrix> from_localities(std::span<Locality const> localities,
                                                          LevelLinks const& levels);

  [[nodiscard]] std::uint32_t size() const { return size_; }

  // from and to are below size() and different.
  [[nodiscard]] Link const& link(std::uint32_t from, std::uint32_t to) const {
    return links_[std::size_t{from} * size_ + to];
  }

  // For algorithms that use a link in both directions: the lesser bandwidth and the greater latency of the two.
  [[nodiscard]] Link both_ways(std::uint32_t a, std::uint32_t b) const;

  // Moves the link from `from` to `to` towards a measurement: weight 1 replaces it, 0.25 smooths. Latency and seconds
  // per byte are averaged, so the cost of a hop of any size is the average of both costs. Errors:
  // PlanErrc::rank_out_of_range for an unknown worker; bad_parameter for a link to itself, an impossible measurement,
  // or a weight outside 0..1. The matrix is unchanged after an error.
  [[nodiscard]] Status refine(std::uint32_t from, std::uint32_t to, Link const& measured, double weight = 1);

  // Seconds that a hop of `bytes` takes, for every ordered pair; 0 on the diagonal.
  [[nodiscard]] SquareMatrix hop_seconds(double bytes) const;

  // The same links after renumbering: worker order[r] becomes worker r. order is a permutation of all workers.
  [[nodiscard]] LinkMatrix in_order(std::span<std::uint32_t const> order) const;

  friend bool operator==(LinkMatrix const&, LinkMatrix const&) = default;

 private:
  explicit LinkMatrix(std::uint32_t size) : size_(size), links_(std::size_t{size} * size) {}
  Link& entry(std::uint32_t from, std::uint32_t to) { return links_[std::size_t{from} * size_ + to]; }

  std::uint32_t size_;
  std::vector<Link> links_;  // row by row; the diagonal is unused
};

}  // namespace chorus::topology
