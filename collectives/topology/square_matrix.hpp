// n x n numbers, one per ordered pair of workers: costs of hops, distances in hops, weights of links.
#pragma once

#include <cstdint>
#include <vector>

namespace chorus::topology {

// A value. at(i, j) belongs to the direction from i to j; i and j must be below size(), which is not checked.
class SquareMatrix {
 public:
  explicit SquareMatrix(std::uint32_t size, double fill = 0) : size_(size), values_(std::size_t{size} * size, fill) {}

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] double at(std::uint32_t i, std::uint32_t j) const { return values_[std::size_t{i} * size_ + j]; }
  [[nodiscard]] double& at(std::uint32_t i, std::uint32_t j) { return values_[std::size_t{i} * size_ + j]; }
  [[nodiscard]] double const* row(std::uint32_t i) const { return values_.data() + std::size_t{i} * size_; }

  friend bool operator==(SquareMatrix const&, SquareMatrix const&) = default;

 private:
  std::uint32_t size_;
  std::vector<double> values_;
};

}  // namespace chorus::topology
