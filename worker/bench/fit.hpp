// The model's constants from measurements, by least squares.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chorus::bench {

// coefficients[0] * x[0] + ... + coefficients[n - 1] * x[n - 1] = value > 0, about.
struct Equation {
  std::vector<double> coefficients;
  double value = 0;
};

// x >= 0 that makes the relative errors' squares least, so that microseconds count as much as seconds do; those of
// equations that are further off than most count less, as they may come from a moment in which something else went on.
// All equations have as many coefficients, at most 16, and there are at least as many equations.
[[nodiscard]] std::vector<double> least_squares(std::span<Equation const> equations);

// The median of the relative errors.
[[nodiscard]] double median_error(std::span<Equation const> equations, std::span<double const> x);

}  // namespace chorus::bench
