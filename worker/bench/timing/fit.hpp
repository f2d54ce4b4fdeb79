// Least squares for the model's constants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chorus::bench {

// coefficients[0] * x[0] + ... + coefficients[n - 1] * x[n - 1] = value > 0, approximately.
struct Equation {
  std::vector<double> coefficients;
  double value = 0;
};

// The x >= 0 with the least squares of the relative errors, so that microseconds count as much as seconds. Equations
// with larger errors than most count less, because they may have been disturbed. All equations have the same number of
// coefficients, at most 16, and there are at least as many equations.
[[nodiscard]] std::vector<double> least_squares(std::span<Equation const> equations);

// The median of the relative errors.
[[nodiscard]] double median_error(std::span<Equation const> equations, std::span<double const> x);

}  // namespace chorus::bench
