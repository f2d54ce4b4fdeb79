#include "collectives/topology/orders/tour_search.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

namespace chorus::topology {
namespace {

// All neighbours for small rings; for large ones as many as the literature finds sufficient.
constexpr std::uint32_t all_neighbours_up_to = 128;
constexpr std::uint32_t neighbours_of_large = 12;
constexpr std::uint32_t longest_segment = 3;
constexpr std::size_t exchanges_per_worker = 100;

// One tour while it is improved: places in an array, and the workers whose neighbourhood has changed.
class Exchanges {
 public:
  Exchanges(SquareMatrix const& costs, std::vector<std::uint32_t> const& nearest, std::uint32_t neighbours, Tour tour)
      : costs_(costs),
        nearest_(nearest),
        neighbours_(neighbours),
        tour_(std::move(tour)),
        place_(tour_.size()),
        waits_(tour_.size(), true),
        open_(tour_.begin(), tour_.end()) {
    renumber(0, size());
    auto const total = std::accumulate(costs_.row(0), costs_.row(0) + size(), 0.0);
    noise_ = 1e-12 * total;
  }

  Tour run() {
    auto left = exchanges_per_worker * tour_.size();
    for (; !open_.empty() && left > 0; open_.pop_front()) {
      auto const worker = open_.front();
      waits_[worker] = false;
      while (left > 0 && improve_at(worker)) --left;
    }
    return std::move(tour_);
  }

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(tour_.size()); }
  double cost(std::uint32_t a, std::uint32_t b) const { return costs_.at(a, b); }
  std::uint32_t after(std::uint32_t worker) const {
    auto const place = place_[worker] + 1;
    return tour_[place == size() ? 0 : place];
  }
  std::uint32_t before(std::uint32_t worker) const {
    auto const place = place_[worker];
    return tour_[(place == 0 ? size() : place) - 1];
  }
  std::uint32_t step(std::uint32_t worker, bool forward) const { return forward ? after(worker) : before(worker); }

  void look_again(std::uint32_t worker) {
    if (waits_[worker]) return;
    waits_[worker] = true;
    open_.push_back(worker);
  }

  void renumber(std::uint32_t from, std::uint32_t to) {
    for (auto place = from; place < to; ++place) place_[tour_[place]] = place;
  }

  bool improve_at(std::uint32_t worker) {
    for (bool const forward : {true, false})
      if (two_opt(worker, forward) || or_opt(worker, forward)) return true;
    return false;
  }

  // Replaces the hops a-next and c-after_c by a-c and next-after_c (for forward; the mirror image otherwise).
  bool two_opt(std::uint32_t a, bool forward) {
    auto const next = step(a, forward);
    auto const gone = cost(a, next);
    for (std::uint32_t i = 0; i < neighbours_; ++i) {
      auto const c = nearest_[std::size_t{a} * neighbours_ + i];
      auto const first_gain = gone - cost(a, c);
      if (first_gain <= noise_) return false;
      auto const after_c = step(c, forward);
      if (c == next || after_c == a) continue;
      if (first_gain + cost(c, after_c) - cost(next, after_c) <= noise_) continue;
      if (forward)
        reverse(next, c);
      else
        reverse(c, next);
      for (auto const worker : {a, next, c, after_c}) look_again(worker);
      return true;
    }
    return false;
  }

  // Reverses the part of the tour from `first` forward to `last` or, which is the same ring, the rest of it.
  void reverse(std::uint32_t first, std::uint32_t last) {
    auto from = place_[first], to = place_[last];
    auto length = (to + size() - from) % size() + 1;
    if (2 * length > size()) {
      auto const outside = from;
      from = (to + 1) % size();
      to = (outside + size() - 1) % size();
      length = size() - length;
    }
    for (auto swaps = length / 2; swaps > 0; --swaps) {
      std::swap(tour_[from], tour_[to]);
      place_[tour_[from]] = from;
      place_[tour_[to]] = to;
      if (++from == size()) from = 0;
      to = (to == 0 ? size() : to) - 1;
    }
  }

  // Moves the segment that begins at a, and extends away from a's neighbour on the other side, to a place beside one of
  // a's nearest workers c: a next to c, the segment's other end next to c's former neighbour.
  bool or_opt(std::uint32_t a, bool forward) {
    auto end = a;
    for (std::uint32_t length = 1; length <= longest_segment && length + 3 <= size(); ++length) {
      if (length > 1) end = step(end, forward);
      auto const outside_a = step(a, !forward), outside_end = step(end, forward);
      auto const gain = cost(outside_a, a) + cost(end, outside_end) - cost(outside_a, outside_end);
      for (std::uint32_t i = 0; i < neighbours_; ++i) {
        auto const c = nearest_[std::size_t{a} * neighbours_ + i];
        if (gain - cost(a, c) <= noise_) break;
        if (inside(c, a, length, forward)) continue;
        for (bool const behind : {true, false}) {
          auto const beside = step(c, behind);
          if (inside(beside, a, length, forward)) continue;
          if (gain - cost(a, c) - cost(end, beside) + cost(c, beside) <= noise_) continue;
          move(a, length, forward, c, behind);
          for (auto const worker : {a, end, outside_a, outside_end, c, beside}) look_again(worker);
          return true;
        }
      }
    }
    return false;
  }

  bool inside(std::uint32_t worker, std::uint32_t a, std::uint32_t length, bool forward) const {
    auto const first = forward ? place_[a] : place_[worker];
    auto const second = forward ? place_[worker] : place_[a];
    return (second + size() - first) % size() < length;
  }

  // a and the length - 1 workers after it (before it, if not forward) go between c and its successor (its predecessor,
  // if not behind), a beside c.
  void move(std::uint32_t a, std::uint32_t length, bool forward, std::uint32_t c, bool behind) {
    Tour segment{a};
    while (segment.size() < length) segment.push_back(step(segment.back(), forward));
    if (!behind) std::reverse(segment.begin(), segment.end());
    Tour moved;
    moved.reserve(tour_.size());
    auto worker = forward ? after(segment[behind ? length - 1 : 0]) : after(a);
    for (auto rest = size() - length; rest > 0; --rest, worker = after(worker)) {
      if (worker == c && !behind) moved.insert(moved.end(), segment.begin(), segment.end());
      moved.push_back(worker);
      if (worker == c && behind) moved.insert(moved.end(), segment.begin(), segment.end());
    }
    tour_ = std::move(moved);
    renumber(0, size());
  }

  SquareMatrix const& costs_;
  std::vector<std::uint32_t> const& nearest_;
  std::uint32_t neighbours_;
  Tour tour_;
  std::vector<std::uint32_t> place_;  // of each worker in the tour
  std::vector<bool> waits_;           // in open_ and not tried yet
  std::deque<std::uint32_t> open_;
  double noise_ = 0;  // gains up to this are rounding
};

}  // namespace

Tour nearest_neighbour_tour(SquareMatrix const& costs, std::uint32_t start) {
  Tour tour{start}, left;
  for (std::uint32_t worker = 0; worker < costs.size(); ++worker)
    if (worker != start) left.push_back(worker);
  while (!left.empty()) {
    auto const* row = costs.row(tour.back());
    auto const nearest = std::min_element(
        left.begin(), left.end(), [&](auto a, auto b) { return row[a] < row[b] || (row[a] == row[b] && a < b); });
    tour.push_back(*nearest);
    *nearest = left.back();
    left.pop_back();
  }
  return tour;
}

TourSearch::TourSearch(SquareMatrix const& costs)
    : costs_(costs),
      neighbours_(costs.size() <= all_neighbours_up_to ? std::max(costs.size(), 1u) - 1 : neighbours_of_large),
      nearest_(std::size_t{costs.size()} * neighbours_) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t worker = 0; worker < costs.size(); ++worker) {
    others.clear();
    for (std::uint32_t other = 0; other < costs.size(); ++other)
      if (other != worker) others.push_back(other);
    auto const* row = costs.row(worker);
    std::partial_sort_copy(others.begin(), others.end(),
                           nearest_.begin() + static_cast<std::ptrdiff_t>(std::size_t{worker} * neighbours_),
                           nearest_.begin() + static_cast<std::ptrdiff_t>((std::size_t{worker} + 1) * neighbours_),
                           [&](auto a, auto b) { return row[a] < row[b] || (row[a] == row[b] && a < b); });
  }
}

Tour TourSearch::improve(Tour tour) const {
  if (tour.size() < 4) return tour;
  return Exchanges(costs_, nearest_, neighbours_, std::move(tour)).run();
}

}  // namespace chorus::topology
