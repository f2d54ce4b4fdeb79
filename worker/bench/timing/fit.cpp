#include "worker/bench/timing/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "collectives/core/assert.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {
namespace {

using Row = std::vector<double>;

// Gaussian elimination with the largest pivot; empty if the matrix is singular. The last column is the right side.
std::optional<Row> solve(std::vector<Row> rows) {
  auto const n = rows.size();
  for (std::size_t column = 0; column < n; ++column) {
    auto const pivot =
        std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(column), rows.end(),
                         [&](Row const& a, Row const& b) { return std::abs(a[column]) < std::abs(b[column]); });
    std::iter_swap(rows.begin() + static_cast<std::ptrdiff_t>(column), pivot);
    if (std::abs(rows[column][column]) < 1e-12) return std::nullopt;
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      auto const factor = rows[row][column] / rows[column][column];
      for (auto k = column; k <= n; ++k) rows[row][k] -= factor * rows[column][k];
    }
  }
  Row x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = rows[i][n] / rows[i][i];
  return x;
}

double relative_error(Equation const& equation, std::span<double const> x) {
  auto const found = std::inner_product(x.begin(), x.end(), equation.coefficients.begin(), 0.0);
  return found / equation.value - 1;
}

// The normal equations of the unknowns that are not fixed to 0, each scaled so that its coefficients are about 1: some
// belong to single messages, others to millions of bytes.
class Fit {
 public:
  Fit(std::span<Equation const> equations, std::span<double const> weights)
      : equations_(equations), weights_(weights), n_(equations.front().coefficients.size()), unit_(n_) {
    for (auto const& equation : equations)
      for (std::size_t i = 0; i < n_; ++i)
        unit_[i] = std::max(unit_[i], std::abs(equation.coefficients[i] / equation.value));
  }

  std::optional<Row> without(std::uint32_t left_out) const {
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < n_; ++i)
      if ((left_out >> i & 1) == 0 && unit_[i] > 0) kept.push_back(i);
    std::vector<Row> rows(kept.size(), Row(kept.size() + 1));
    for (std::size_t e = 0; e < equations_.size(); ++e)
      for (std::size_t a = 0; a < kept.size(); ++a) {
        auto const weighted = weights_[e] * scaled(equations_[e], kept[a]);
        for (std::size_t b = 0; b < kept.size(); ++b) rows[a][b] += weighted * scaled(equations_[e], kept[b]);
        rows[a].back() += weighted;
      }
    auto const solution = solve(std::move(rows));
    if (!solution) return std::nullopt;
    Row x(n_);
    for (std::size_t a = 0; a < kept.size(); ++a) x[kept[a]] = (*solution)[a] / unit_[kept[a]];
    return x;
  }

 private:
  [[nodiscard]] double scaled(Equation const& equation, std::size_t i) const {
    return equation.coefficients[i] / equation.value / unit_[i];
  }

  std::span<Equation const> equations_;
  std::span<double const> weights_;
  std::size_t n_;
  Row unit_;
};

// Tries all sets of unknowns that are 0, and returns the best fit in which all others are positive: there are few
// unknowns.
Row fit_positive(std::span<Equation const> equations, std::span<double const> weights) {
  auto const n = equations.front().coefficients.size();
  Fit const fit(equations, weights);
  Row best(n);
  auto least = std::numeric_limits<double>::infinity();
  for (std::uint32_t left_out = 0; left_out < 1u << n; ++left_out) {
    auto const x = fit.without(left_out);
    if (!x || std::any_of(x->begin(), x->end(), [](double value) { return value < 0; })) continue;
    auto squares = 0.0;
    for (std::size_t e = 0; e < equations.size(); ++e)
      squares += weights[e] * std::pow(relative_error(equations[e], *x), 2);
    if (squares < least) {
      least = squares;
      best = *x;
    }
  }
  return best;
}

}  // namespace

std::vector<double> least_squares(std::span<Equation const> equations) {
  CHORUS_ASSERT(!equations.empty() && equations.front().coefficients.size() <= 16, "a small system");
  constexpr int rounds = 10;
  constexpr double usual_error = 0.05;
  Row weights(equations.size(), 1);
  auto x = fit_positive(equations, weights);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t e = 0; e < equations.size(); ++e)
      weights[e] = 1 / std::max(std::abs(relative_error(equations[e], x)), usual_error);
    x = fit_positive(equations, weights);
  }
  return x;
}

double median_error(std::span<Equation const> equations, std::span<double const> x) {
  std::vector<double> errors;
  for (auto const& equation : equations) errors.push_back(std::abs(relative_error(equation, x)));
  return median(std::move(errors));
}

}  // namespace chorus::bench
