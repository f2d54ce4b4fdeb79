// Reductions of many sources into many destinations give the same bits as one scalar operation after the other.
#include "worker/devices/reduce.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "worker/devices/kernels.hpp"
#include "worker/devices/testing/scalar_reductions.hpp"

using namespace chorus;
using namespace chorus::devices;

namespace {

using Bytes = std::vector<std::byte>;

bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

// Any bits for integers; small whole numbers for floats, so that only f16 and bf16 round.
Bytes elements_of(Dtype dtype, std::uint64_t elements, std::uint64_t seed) {
  auto const size = element_bytes(dtype);
  Bytes bytes(elements * size);
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const mixed = (i + 1 + seed * 7919) * 0x9e3779b97f4a7c15u >> 20;
    auto const small = static_cast<float>(static_cast<int>(mixed % 31) - 15);
    auto const bits = __builtin_bit_cast(std::uint32_t, small);
    auto* const at = bytes.data() + i * size;
    if (dtype == Dtype::f32) std::memcpy(at, &small, 4);
    if (dtype == Dtype::f64) {
      auto const wide = static_cast<double>(small);
      std::memcpy(at, &wide, 8);
    }
    if (dtype == Dtype::bf16) std::memcpy(at, reinterpret_cast<char const*>(&bits) + 2, 2);
    if (dtype == Dtype::f16) {
      auto const half = static_cast<std::uint16_t>(0x3c00 + mixed % 0x800);  // 1 to 4
      std::memcpy(at, &half, 2);
    }
    if (!(dtype == Dtype::f32 || dtype == Dtype::f64 || is_half(dtype))) std::memcpy(at, &mixed, size);
  }
  return bytes;
}

struct Shape {
  std::size_t sources, destinations;
  std::uint64_t elements;
  std::size_t shift;  // elements past the beginning of an aligned block
  bool streams;
  std::size_t odd = 0;  // and bytes past that
};

struct Memory {
  Memory(Dtype dtype, Shape shape) : shape_(shape), size_(element_bytes(dtype)) {
    for (std::size_t s = 0; s < shape.sources; ++s) inputs.push_back(elements_of(dtype, shape.elements, s));
    for (auto const& input : inputs) {
      held.emplace_back(input.size() + 64 + shape.odd);
      sources.push_back(std::copy(input.begin(), input.end(), aligned(held.back()) + shape.odd) - input.size());
    }
    for (std::size_t d = 0; d < shape.destinations; ++d)
      outputs.emplace_back((shape.elements + 2 * shape.shift) * size_ + 64 + 2 * shape.odd);
    for (auto& output : outputs) destinations.push_back(aligned(output) + shape.shift * size_ + shape.odd);
  }
  static std::byte* aligned(Bytes& bytes) {
    auto const at = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (64 - at % 64) % 64;
  }
  [[nodiscard]] ReduceArguments arguments() const {
    return {sources.data(), sources.size(), destinations.data(), destinations.size(), shape_.elements, shape_.streams};
  }
  [[nodiscard]] bool all_hold(Bytes const& expected) const {
    return std::all_of(destinations.begin(), destinations.end(), [&](std::byte const* at) {
      return std::equal(expected.begin(), expected.end(), at) && at[expected.size()] == std::byte{0};
    });
  }
  Shape shape_;
  std::size_t size_;
  std::vector<Bytes> inputs, held, outputs;  // `held`: the memory of the sources
  std::vector<std::byte const*> sources;
  std::vector<std::byte*> destinations;
};

constexpr std::array<Shape, 9> shapes{{{1, 1, 5, 0, false},
                                       {2, 1, 1003, 0, false},
                                       {2, 2, 1003, 1, true},
                                       {3, 1, 4097, 3, true},
                                       {3, 4, 2500, 0, true},
                                       {8, 8, 777, 5, false},
                                       {5, 2, 3, 1, true},
                                       {1, 3, 2049, 0, true},
                                       {2, 1, 0, 0, true}}};

template <class T>
T element_at(Bytes const& bytes, std::uint64_t i) {
  T x;
  std::memcpy(&x, bytes.data() + i * sizeof x, sizeof x);
  return x;
}

// How the reference divides, and what it multiplies the sources with; a power of two, so that its product is exact.
struct Averaging {
  std::uint32_t divisor = 1;
  float weight = 1;
};

template <class T>
Bytes plain_one_by_one(ReduceOp op, Memory const& memory, Averaging averaging) {
  Bytes result(memory.inputs[0].size());
  auto const weighed = [&](T x) {
    if constexpr (std::is_floating_point_v<T>)
      return x * static_cast<T>(averaging.weight);
    else
      return x;
  };
  for (std::uint64_t i = 0; i < memory.shape_.elements; ++i) {
    auto value = weighed(element_at<T>(memory.inputs[0], i));
    for (std::size_t s = 1; s < memory.inputs.size(); ++s)
      value = naive(op, value, weighed(element_at<T>(memory.inputs[s], i)));
    value = naive_quotient(value, averaging.divisor);
    std::memcpy(result.data() + i * sizeof value, &value, sizeof value);
  }
  return result;
}

// Computes in f32, and rounds once.
Bytes halves_one_by_one(ReduceOp op, SmallFloat format, Memory const& memory, Averaging averaging) {
  Bytes result(memory.inputs[0].size());
  for (std::uint64_t i = 0; i < memory.shape_.elements; ++i) {
    auto const weighed = [&](Bytes const& input) {
      return static_cast<float>(format.value_of(element_at<std::uint16_t>(input, i))) * averaging.weight;
    };
    auto value = weighed(memory.inputs[0]);
    for (std::size_t s = 1; s < memory.inputs.size(); ++s) value = naive(op, value, weighed(memory.inputs[s]));
    auto const rounded = nearest(naive_quotient(value, averaging.divisor), format);
    std::memcpy(result.data() + i * sizeof rounded, &rounded, sizeof rounded);
  }
  return result;
}

Bytes one_by_one(ReduceOp op, Dtype dtype, Memory const& memory, Averaging averaging = {}) {
  switch (dtype) {
    case Dtype::f64:
      return plain_one_by_one<double>(op, memory, averaging);
    case Dtype::f32:
      return plain_one_by_one<float>(op, memory, averaging);
    case Dtype::f16:
      return halves_one_by_one(op, f16_numbers, memory, averaging);
    case Dtype::bf16:
      return halves_one_by_one(op, bf16_numbers, memory, averaging);
    case Dtype::i64:
      return plain_one_by_one<std::int64_t>(op, memory, averaging);
    case Dtype::i32:
      return plain_one_by_one<std::int32_t>(op, memory, averaging);
    case Dtype::i16:
      return plain_one_by_one<std::int16_t>(op, memory, averaging);
    case Dtype::i8:
      return plain_one_by_one<std::int8_t>(op, memory, averaging);
    case Dtype::u64:
      return plain_one_by_one<std::uint64_t>(op, memory, averaging);
    case Dtype::u32:
      return plain_one_by_one<std::uint32_t>(op, memory, averaging);
    case Dtype::u16:
      return plain_one_by_one<std::uint16_t>(op, memory, averaging);
    case Dtype::u8:
      return plain_one_by_one<std::uint8_t>(op, memory, averaging);
    default:
      return {};
  }
}

}  // namespace

TEST_CASE("a reduction gives the bits of one operation after the other") {
  for (auto const dtype : all_dtypes)
    for (auto const op : all_reduce_ops) {
      if (!can_reduce(op, dtype)) continue;
      Reducer const reducer(op, dtype);
      for (auto const shape : shapes) {
        CAPTURE(name(dtype));
        CAPTURE(name(op));
        CAPTURE(shape.sources);
        CAPTURE(shape.destinations);
        Memory memory(dtype, shape);
        auto const divisor = op == ReduceOp::avg && shape.sources > 1 ? static_cast<std::uint32_t>(shape.sources) : 1;
        reducer.run(memory.arguments(), {.divisor = divisor});
        REQUIRE(memory.all_hold(one_by_one(op, dtype, memory, {divisor})));
      }
    }
}

TEST_CASE("every instruction set reduces alike") {
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    CAPTURE(kernels->name);
    for (auto const dtype : all_dtypes)
      for (auto const op : all_reduce_ops) {
        auto const reduce = kernels->reduce[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
        CHECK((reduce != nullptr) == can_reduce(op, dtype));
        if (reduce == nullptr) continue;
        for (auto const shape : shapes) {
          Memory memory(dtype, shape);
          reduce(memory.arguments(), {});
          REQUIRE(memory.all_hold(one_by_one(op, dtype, memory)));
        }
      }
  }
}

TEST_CASE("memory may begin at any byte, also if results are written past the caches") {
  for (auto const dtype : all_dtypes)
    for (auto const op : all_reduce_ops) {
      if (!can_reduce(op, dtype)) continue;
      for (std::size_t const odd : {1, 2, 3, 4, 7})
        for (std::uint32_t const divisor : {1, 3}) {
          if (divisor != 1 && op != ReduceOp::avg) continue;
          CAPTURE(name(dtype));
          CAPTURE(name(op));
          CAPTURE(odd);
          Memory memory(dtype, {3, 2, 2500, 0, true, odd});
          Reducer(op, dtype).run(memory.arguments(), {.divisor = divisor});
          REQUIRE(memory.all_hold(one_by_one(op, dtype, memory, {divisor})));
        }
    }
}

TEST_CASE("partial sums in f32 may begin at any byte, too") {
  for (auto const dtype : {Dtype::f16, Dtype::bf16})
    for (bool const streams : {false, true}) {
      Memory memory(dtype, {4, 1, 2500, 0, streams});
      auto const expected = one_by_one(ReduceOp::sum, dtype, memory);
      Reducer const reducer(ReduceOp::sum, dtype);
      Bytes sum(2500 * 4 + 64);
      auto* const to = Memory::aligned(sum) + 1;
      reducer.run({memory.sources.data(), 2, &to, 1, 2500, streams}, {.wide_results = true});
      std::array<std::byte const*, 3> const rest{to, memory.sources[2], memory.sources[3]};
      reducer.run({rest.data(), 3, memory.destinations.data(), 1, 2500, streams}, {.wide_source = true});
      CHECK(memory.all_hold(expected));
    }
}

TEST_CASE("the result may overwrite a source") {
  Memory memory(Dtype::f32, {3, 1, 1003, 0, false});
  auto const expected = one_by_one(ReduceOp::sum, Dtype::f32, memory);
  auto* const in_place = memory.inputs[1].data();
  Reducer(ReduceOp::sum, Dtype::f32).run({memory.sources.data(), 3, &in_place, 1, 1003, false}, {});
  CHECK(memory.inputs[1] == expected);
}

TEST_CASE("partial sums of halves stay in f32 and are rounded once") {
  for (auto const dtype : {Dtype::f16, Dtype::bf16}) {
    Memory memory(dtype, {4, 1, 2500, 0, false});
    auto const expected = one_by_one(ReduceOp::sum, dtype, memory);
    Reducer const reducer(ReduceOp::sum, dtype);
    Bytes sum(2500 * 4), result(2500 * 2);
    auto* const to = sum.data();
    reducer.run({memory.sources.data(), 2, &to, 1, 2500, false}, {.wide_results = true});
    std::array<std::byte const*, 3> const rest{sum.data(), memory.sources[2], memory.sources[3]};
    auto* const out = result.data();
    reducer.run({rest.data(), 3, &out, 1, 2500, false}, {.wide_source = true});
    CHECK(result == expected);
  }
}

TEST_CASE("an average of scaled floats is that of the floats, whatever the number of sources") {
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    CAPTURE(kernels->name);
    for (auto const dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16})
      for (std::size_t const sources : {1, 2, 3})
        for (std::uint32_t const divisor : {1, 3, 4}) {
          CAPTURE(name(dtype));
          CAPTURE(sources);
          CAPTURE(divisor);
          Memory memory(dtype, {sources, 1, 1003, 0, false});
          std::array<float, 3> const weights{0.25F, 0.25F, 0.25F};
          auto const reduce = kernels->reduce[static_cast<std::size_t>(ReduceOp::avg)][static_cast<std::size_t>(dtype)];
          reduce(memory.arguments(), {.divisor = divisor, .scale = 4, .weights = weights.data()});
          CHECK(memory.all_hold(one_by_one(ReduceOp::avg, dtype, memory, {divisor, 1})));
        }
  }
}

TEST_CASE("an average may stay scaled, also of one source") {
  for (auto const dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16})
    for (std::size_t const sources : {1, 2, 3}) {
      CAPTURE(name(dtype));
      CAPTURE(sources);
      Memory memory(dtype, {sources, 1, 1003, 0, false});
      std::array<float, 3> const weights{0.25F, 0.25F, 0.25F};
      Reducer(ReduceOp::avg, dtype).run(memory.arguments(), {.weights = weights.data()});
      CHECK(memory.all_hold(one_by_one(ReduceOp::avg, dtype, memory, {1, 0.25F})));
    }
}

TEST_CASE("the average of numbers that equal the single one is that number, in every loop and at every address") {
  auto const check = [](Kernels const& kernels, Dtype dtype, auto zero) {
    using T = decltype(zero);
    auto const average = kernels.reduce[static_cast<std::size_t>(ReduceOp::avg)][static_cast<std::size_t>(dtype)];
    std::mt19937_64 random(3);
    for (std::uint32_t const numbers : {3, 5, 6, 7, 9, 24, 100})
      for (bool const is_partial : {false, true})  // the other numbers are added before
        for (std::size_t const shift : {0, 1}) {
          CAPTURE(kernels.name);
          CAPTURE(name(dtype));
          CAPTURE(numbers);
          constexpr std::size_t elements = 331;
          std::vector<T> equal(elements + 1), partial(elements + 1), result(elements + 1);
          float const weight = 1.0F / 128;
          for (std::size_t i = 0; i <= elements; ++i) {
            equal[i] = std::ldexp(T(1) + T(random() >> 11) * T(0x1p-53), static_cast<int>(random() % 200) - 100);
            if (i % 7 == 0 && i % 5 != 0) equal[i] = std::numeric_limits<T>::denorm_min();
            partial[i] = equal[i] * weight;
            for (std::uint32_t k = 2; k < numbers; ++k) partial[i] += equal[i] * weight;
          }
          auto expected = equal;
          for (std::size_t i = 0; i <= elements; i += 5) {  // those get another average
            if (is_partial) partial[i] = 0;
            expected[i] = is_partial ? equal[i] * weight / (T(numbers) * weight) : equal[i];
          }
          auto const at = [&](std::vector<T> const& of) {
            return reinterpret_cast<std::byte const*>(of.data() + shift);
          };
          std::vector<std::byte const*> sources(is_partial ? 1 : numbers - 1, at(is_partial ? partial : equal));
          sources.insert(sources.begin(), at(equal));
          std::vector<float> weights(sources.size(), weight);
          if (is_partial) weights.back() = 1;
          auto* to = const_cast<std::byte*>(at(result));
          average({sources.data(), sources.size(), &to, 1, elements, shift == 0},
                  {.divisor = numbers, .scale = 128, .weights = weights.data(), .contributions = numbers});
          CHECK(std::memcmp(at(result), at(expected), elements * sizeof(T)) == 0);
        }
  };
  for (auto const* kernels : runnable_kernels()) {
    if (kernels == nullptr) continue;
    check(*kernels, Dtype::f32, 0.0F);
    check(*kernels, Dtype::f64, 0.0);
  }
}

TEST_CASE("copies copy, of every size of element") {
  for (auto const dtype : all_dtypes) {
    Memory memory(dtype, {1, 2, 3001, 1, true});
    Reducer::copier(dtype).run(memory.arguments(), {});
    CHECK(memory.all_hold(memory.inputs[0]));
  }
}
