// Initial values of rows. They depend on the settings and the row's number only, by a counter-based generator and
// exactly specified arithmetic, so that owner, backup and a restarted process compute the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "http/api/parameters/optimizers.hpp"

namespace chorus::parameters {

// A value. Random numbers are drawn in double and rounded once to f32 or f64; to f16 and bf16 through f32.
class Initializer {
 public:
  // `settings` are complete. Errors: unsupported_dtype for integers with anything but zeros.
  [[nodiscard]] static Result<Initializer> make(api::InitializerSettings const& settings, Dtype dtype);

  // Fills `values`, which are whole aligned elements, with row `row` of the whole parameter, not of a shard, from
  // column first_column on.
  void fill(std::uint64_t row, std::span<std::byte> values, std::uint64_t first_column = 0) const;

 private:
  enum class Kind : std::uint8_t { constant, uniform, normal };
  [[nodiscard]] double draw(double fraction) const;
  template <class Number>
  void draw_all(std::uint64_t row, std::uint64_t first_column, std::span<Number> into) const;

  Kind kind_ = Kind::constant;
  Dtype dtype_ = Dtype::f32;
  double base_ = 0;   // the constant, the lower end, the mean
  double width_ = 0;  // upper end - lower end, the standard deviation
  std::uint64_t seed_ = 0;
};

}  // namespace chorus::parameters
