// Carriers of the sums of an average: wider or scaled numbers, so that no sum overflows, and sums of equal floats are
// rounded once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"

namespace chorus::devices {

// The carrier of sums of `summands` numbers of a dtype. A value.
class Carrier {
 public:
  // summands: at least 1.
  [[nodiscard]] static Carrier of(Dtype dtype, std::uint64_t summands);
  // f32 and f64 in their own dtype, only scaled: sums of equal numbers may be rounded.
  [[nodiscard]] static Carrier scaled(Dtype dtype, std::uint64_t summands);

  [[nodiscard]] Dtype dtype() const { return carried_; }              // of the sums
  [[nodiscard]] std::uint32_t per_element() const { return parts_; }  // numbers per element
  [[nodiscard]] std::uint64_t bytes(std::uint64_t elements) const {
    return elements * parts_ * element_bytes(carried_);
  }
  // The power of two by which widen() divides floats, so that no sum leaves the range of dtype().
  [[nodiscard]] float scale() const { return scale_; }
  // True if f32 and f64 are only scaled.
  [[nodiscard]] bool is_as_wide() const { return carried_ == dtype_ && parts_ == 1; }

  // widen() converts elements to the carrier, narrow() converts sums back and divides them: integers truncate towards
  // zero, floats are rounded once. Both spans hold the same number of elements and do not overlap, or, if
  // is_as_wide(), may be the same. narrow() destroys `sums`.
  void widen(std::span<std::byte> to, std::span<std::byte const> from) const;
  void narrow(std::span<std::byte> to, std::span<std::byte> sums, std::uint32_t divisor) const;

 private:
  Carrier(Dtype dtype, Dtype carried, std::uint32_t parts, float scale)
      : dtype_(dtype), carried_(carried), parts_(parts), scale_(scale) {}

  Dtype dtype_, carried_;
  std::uint32_t parts_;
  float scale_;
};

}  // namespace chorus::devices
