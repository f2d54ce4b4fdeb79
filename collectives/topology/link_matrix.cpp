#include "collectives/topology/link_matrix.hpp"

#include <algorithm>
#include <string>

#include "collectives/core/assert.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/topology/locality_groups.hpp"

namespace chorus::topology {
namespace {

Error bad(std::string detail) { return {PlanErrc::bad_parameter, std::move(detail)}; }

Status check_size(std::size_t workers) {
  if (workers >= 1 && workers <= max_matrix_workers) return ok();
  return bad("a link matrix of " + std::to_string(workers) + " workers; expected 1 to " +
             std::to_string(max_matrix_workers));
}

Status check_square(LinkMatrix::Rows const& rows, std::size_t size, std::string const& name) {
  auto const expected = "; expected a square matrix of " + std::to_string(size) + " x " + std::to_string(size);
  if (rows.size() != size)
    return bad("the " + name + " matrix has " + std::to_string(rows.size()) + " rows" + expected);
  for (std::size_t i = 0; i < size; ++i)
    if (rows[i].size() != size)
      return bad("row " + std::to_string(i) + " of the " + name + " matrix has " + std::to_string(rows[i].size()) +
                 " entries" + expected);
  return ok();
}

std::string link_name(std::uint32_t from, std::uint32_t to) {
  return "link (" + std::to_string(from) + ", " + std::to_string(to) + ")";
}

}  // namespace

Result<LinkMatrix> LinkMatrix::make(Rows const& bandwidth_gbyte_per_s, Rows const& latency_s) {
  auto const size = bandwidth_gbyte_per_s.size();
  if (auto fits = check_size(size); !fits) return fits.error();
  if (auto square = check_square(bandwidth_gbyte_per_s, size, "bandwidth"); !square) return square.error();
  if (auto square = check_square(latency_s, size, "latency"); !square) return square.error();
  LinkMatrix matrix(static_cast<std::uint32_t>(size));
  for (std::uint32_t from = 0; from < size; ++from)
    for (std::uint32_t to = 0; to < size; ++to) {
      if (from == to) continue;
      Link const link{latency_s[from][to], bandwidth_gbyte_per_s[from][to]};
      if (auto usable = check(link, {}); !usable) return check(link, link_name(from, to)).error();
      matrix.entry(from, to) = link;
    }
  return matrix;
}

Result<LinkMatrix> LinkMatrix::from_localities(std::span<Locality const> localities, LevelLinks const& levels) {
  if (auto fits = check_size(localities.size()); !fits) return fits.error();
  for (auto const level : all_levels)
    if (auto usable = check(levels[static_cast<std::size_t>(level)], "link of level " + std::string(name(level)));
        !usable)
      return usable.error();
  auto const groups = locality_groups(localities);
  LinkMatrix matrix(static_cast<std::uint32_t>(localities.size()));
  for (std::uint32_t from = 0; from < matrix.size(); ++from)
    for (std::uint32_t to = 0; to < matrix.size(); ++to)
      if (from != to) matrix.entry(from, to) = levels[static_cast<std::size_t>(shared_level(groups[from], groups[to]))];
  return matrix;
}

Link LinkMatrix::both_ways(std::uint32_t a, std::uint32_t b) const {
  auto const& there = link(a, b);
  auto const& back = link(b, a);
  return {std::max(there.latency_s, back.latency_s), std::min(there.bandwidth_gbyte_per_s, back.bandwidth_gbyte_per_s)};
}

Status LinkMatrix::refine(std::uint32_t from, std::uint32_t to, Link const& measured, double weight) {
  for (auto const worker : {from, to})
    if (worker >= size_)
      return Error(PlanErrc::rank_out_of_range, link_name(from, to) + ": worker " + std::to_string(worker) +
                                                    " is not one of 0 to " + std::to_string(size_ - 1));
  if (from == to) return bad(link_name(from, to) + ": a worker has no link to itself; expected two workers");
  if (auto usable = check(measured, link_name(from, to)); !usable) return usable;
  if (!(weight >= 0 && weight <= 1)) return bad(link_name(from, to) + ": the weight of a measurement is 0 to 1");
  auto& link = entry(from, to);
  if (weight == 1) {
    link = measured;
  } else {
    link.latency_s += weight * (measured.latency_s - link.latency_s);
    link.bandwidth_gbyte_per_s =
        1 / ((1 - weight) / link.bandwidth_gbyte_per_s + weight / measured.bandwidth_gbyte_per_s);
  }
  return ok();
}

LinkMatrix LinkMatrix::in_order(std::span<std::uint32_t const> order) const {
  CHORUS_ASSERT(order.size() == size_, "an order names every worker once");
  LinkMatrix ordered(size_);
  for (std::uint32_t from = 0; from < size_; ++from)
    for (std::uint32_t to = 0; to < size_; ++to)
      if (from != to) ordered.entry(from, to) = link(order[from], order[to]);
  return ordered;
}

SquareMatrix LinkMatrix::hop_seconds(double bytes) const {
  SquareMatrix seconds(size_);
  for (std::uint32_t from = 0; from < size_; ++from)
    for (std::uint32_t to = 0; to < size_; ++to)
      if (from != to) seconds.at(from, to) = link(from, to).seconds(bytes);
  return seconds;
}

}  // namespace chorus::topology
