// Which C++ types are elements of tensors, and how memory is handed to a call.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "collectives/core/dtype.hpp"

namespace chorus {

// Half precision as bits: the library reduces them (in f32), the program converts them with what it has.
struct Float16 {
  std::uint16_t bits = 0;
  friend bool operator==(Float16, Float16) = default;
};
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(BFloat16, BFloat16) = default;
};

template <class T>
struct DtypeOf;  // not defined for anything else
template <>
struct DtypeOf<double> : std::integral_constant<Dtype, Dtype::f64> {};
template <>
struct DtypeOf<float> : std::integral_constant<Dtype, Dtype::f32> {};
template <>
struct DtypeOf<Float16> : std::integral_constant<Dtype, Dtype::f16> {};
template <>
struct DtypeOf<BFloat16> : std::integral_constant<Dtype, Dtype::bf16> {};
template <>
struct DtypeOf<std::int64_t> : std::integral_constant<Dtype, Dtype::i64> {};
template <>
struct DtypeOf<std::int32_t> : std::integral_constant<Dtype, Dtype::i32> {};
template <>
struct DtypeOf<std::int16_t> : std::integral_constant<Dtype, Dtype::i16> {};
template <>
struct DtypeOf<std::int8_t> : std::integral_constant<Dtype, Dtype::i8> {};
template <>
struct DtypeOf<std::uint64_t> : std::integral_constant<Dtype, Dtype::u64> {};
template <>
struct DtypeOf<std::uint32_t> : std::integral_constant<Dtype, Dtype::u32> {};
template <>
struct DtypeOf<std::uint16_t> : std::integral_constant<Dtype, Dtype::u16> {};
template <>
struct DtypeOf<std::uint8_t> : std::integral_constant<Dtype, Dtype::u8> {};

template <class T>
concept Element = requires {
  DtypeOf<T>::value;
};

// A vector, an array, a span, a Tensor: elements one behind the other.
template <class R>
concept Elements = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::remove_cv_t<std::ranges::range_value_t<R>>>;

template <class R>
concept WritableElements = Elements<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// Memory that a call writes to, and its dtype: made from whatever holds elements. The memory is the caller's and stays
// where it is until the call has ended.
struct TensorView {
  TensorView() = default;  // nothing: what a rank passes that has no such buffer
  TensorView(std::span<std::byte> memory, Dtype type) : bytes(memory), dtype(type) {}
  template <WritableElements R>
  TensorView(R&& elements)  // NOLINT(google-explicit-constructor): calls take vectors and spans as they are
      : bytes(std::as_writable_bytes(std::span(std::ranges::data(elements), std::ranges::size(elements)))),
        dtype(DtypeOf<std::remove_cv_t<std::ranges::range_value_t<R>>>::value) {}

  [[nodiscard]] std::uint64_t elements() const { return bytes.size() / element_bytes(dtype); }

  std::span<std::byte> bytes;  // a whole number of elements
  Dtype dtype = Dtype::f32;
};

// The same of memory that a call only reads.
struct ConstTensorView {
  ConstTensorView() = default;
  ConstTensorView(std::span<std::byte const> memory, Dtype type) : bytes(memory), dtype(type) {}
  ConstTensorView(TensorView view) : bytes(view.bytes), dtype(view.dtype) {}  // NOLINT(google-explicit-constructor)
  template <Elements R>
  ConstTensorView(R&& elements)  // NOLINT(google-explicit-constructor)
      : bytes(std::as_bytes(std::span(std::ranges::data(elements), std::ranges::size(elements)))),
        dtype(DtypeOf<std::remove_cv_t<std::ranges::range_value_t<R>>>::value) {}

  [[nodiscard]] std::uint64_t elements() const { return bytes.size() / element_bytes(dtype); }

  std::span<std::byte const> bytes;
  Dtype dtype = Dtype::f32;
};

}  // namespace chorus
