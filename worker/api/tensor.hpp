// Elements in memory that the other workers of the host see: calls use them without a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "worker/api/element.hpp"

namespace chorus {

// Owns its memory, which may outlive the worker that gave it; moves, but does not copy. A contiguous range: pass it to
// any call as it is.
template <Element T>
class Tensor {
 public:
  Tensor() = default;
  // What `owner` keeps alive.
  Tensor(std::shared_ptr<void> owner, std::span<T> elements) : owner_(std::move(owner)), elements_(elements) {}
  Tensor(Tensor&& other) noexcept
      : owner_(std::move(other.owner_)), elements_(std::exchange(other.elements_, std::span<T>())) {}
  Tensor& operator=(Tensor&& other) noexcept {
    owner_ = std::move(other.owner_);
    elements_ = std::exchange(other.elements_, std::span<T>());
    return *this;
  }

  [[nodiscard]] T* data() { return elements_.data(); }
  [[nodiscard]] T const* data() const { return elements_.data(); }
  [[nodiscard]] std::size_t size() const { return elements_.size(); }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size(); }
  [[nodiscard]] T const* begin() const { return data(); }
  [[nodiscard]] T const* end() const { return data() + size(); }
  [[nodiscard]] T& operator[](std::size_t i) { return elements_[i]; }
  [[nodiscard]] T const& operator[](std::size_t i) const { return elements_[i]; }

 private:
  std::shared_ptr<void> owner_;
  std::span<T> elements_;
};

}  // namespace chorus
