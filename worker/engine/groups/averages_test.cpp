// An average is the same by every algorithm: checked over the catalogue, at the limits of every dtype.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "worker/engine/groups/carried_average.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/shared_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using plan::Rank;

namespace {

using Bytes = std::vector<std::byte>;

// Numbers that reveal errors, as bits; an element uses the lowest bits.
struct Telling {
  std::vector<std::uint64_t> equal;  // all ranks have the same
  // Rank r of p has base + (2 r + 1 - p) step: the average is the base, and no sum of it is rounded.
  std::vector<std::uint64_t> bases;
  std::uint64_t step = 1;
};

template <class T>
Telling integers() {
  using Limits = std::numeric_limits<T>;
  auto const bits = [](T value) { return static_cast<std::uint64_t>(value); };
  Telling telling{{bits(Limits::max()), bits(Limits::min()), bits(Limits::max() - 1), 0, 1, 7},
                  {bits(Limits::max() - 9)}};
  if (sizeof(T) == 1) telling.equal.push_back(static_cast<std::uint64_t>(std::is_signed_v<T> ? 127 : 200));
  if (std::is_signed_v<T>) telling.bases.push_back(bits(static_cast<T>(Limits::min() + 9)));
  return telling;
}

// The largest, the smallest normal and, for halves, the smallest number, and 1, and ordinary values. Sums of f32 and
// f64 are rounded, and those of equal numbers with all bits set are exact only for 2 and 4 ranks: other groups get
// numbers with fewer bits.
Telling telling_of(Dtype dtype, std::uint32_t ranks) {
  bool const is_exact = ranks == 2 || ranks == 4;
  switch (dtype) {
    case Dtype::f64: {
      Telling telling{{0x7fefffffffffff00, 0xffefffffffffff00, 0x10000000000000, 0x3ff0000000000000},
                      {0x7fe8000000000000, 0xffe8000000000000},
                      16};
      if (is_exact)
        telling.equal.insert(telling.equal.end(), {0x7fefffffffffffff, 0xffefffffffffffff, 0x7fee42d130773b76});
      return telling;
    }
    case Dtype::f32: {
      Telling telling{{0x7f7ffff0, 0xff7ffff0, 0x00800000, 0x3f800000}, {0x7f400000, 0xff400000}, 16};
      if (is_exact) telling.equal.insert(telling.equal.end(), {0x7f7fffff, 0xff7fffff, 0x7f61b1e6});
      return telling;
    }
    case Dtype::f16:
      return {{0x7bff, 0xfbff, 0x0400, 0x0001, 0x8001, 0x3c00, 0x7b53}, {0x7a00, 0xfa00}, 16};
    case Dtype::bf16:
      return {{0x7f7f, 0xff7f, 0x0080, 0x0001, 0x8001, 0x3f80, 0x7f62}, {0x7f40, 0xff40}, 1};
    case Dtype::i64:
      return integers<std::int64_t>();
    case Dtype::i32:
      return integers<std::int32_t>();
    case Dtype::i16:
      return integers<std::int16_t>();
    case Dtype::i8:
      return integers<std::int8_t>();
    case Dtype::u64:
      return integers<std::uint64_t>();
    case Dtype::u32:
      return integers<std::uint32_t>();
    case Dtype::u16:
      return integers<std::uint16_t>();
    case Dtype::u8:
    case Dtype::int8_block:
    case Dtype::fp8_block:
      break;
  }
  return integers<std::uint8_t>();
}

// The vector of one rank; the expected result if `rank` is empty.
Bytes vector_of(Dtype dtype, std::optional<Rank> rank, std::uint32_t ranks, std::uint64_t elements) {
  auto const telling = telling_of(dtype, ranks);
  auto const width = element_bytes(dtype);
  auto const numbers = telling.equal.size() + telling.bases.size();
  Bytes bytes(elements * width);
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const n = i % numbers;
    auto bits = n < telling.equal.size() ? telling.equal[n] : telling.bases[n - telling.equal.size()];
    if (n >= telling.equal.size() && rank)
      bits += static_cast<std::uint64_t>(2 * std::int64_t{*rank} + 1 - ranks) * telling.step;
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

// Averages as callers make them: they widen before, and divide after, if the run does not.
class Average {
 public:
  Average(Fleet& fleet, Case c) : case_(c), ranks_(fleet.ranks()), collective_(fleet, c, fleet.now()) {
    auto const& program = *collective_.spec(0).program;
    carried_ = CarriedAverage::of(c.reduce, c.dtype, *c.algorithm, program.spec);
    narrow_.resize(ranks_);
    inputs_.resize(ranks_);
    wide_.resize(ranks_);
    for (Rank rank = 0; rank < ranks_; ++rank) set_up(collective_.spec(rank), rank);
  }

  [[nodiscard]] bool run() { return collective_.run(); }

  // Empty, or the wrong rank and its error.
  [[nodiscard]] std::string wrong() {
    auto const whole = vector_of(case_.dtype, std::nullopt, ranks_, case_.elements);
    auto const width = element_bytes(case_.dtype);
    for (Rank rank = 0; rank < ranks_; ++rank) {
      auto const who = to_string(case_) + " of " + std::to_string(ranks_) + ", rank " + std::to_string(rank) + ": ";
      auto const& status = collective_.result(rank).status;
      if (status.has_error()) return who + status.error().detail;
      auto got = narrow_[rank];
      if (carried_ && carried_->narrow(got, collective_.spec(rank).output, nullptr).has_error()) return who + "failed";
      auto expected = whole;
      if (got.empty()) continue;
      if (case_.op == Op::reduce_scatter) {
        auto const block = plan::Layout(case_.elements, ranks_).range(rank);
        expected = {whole.begin() + static_cast<std::ptrdiff_t>(block.begin * width),
                    whole.begin() + static_cast<std::ptrdiff_t>(block.end * width)};
        if (case_.in_place) got = got.subspan(block.begin * width, block.size() * width);
      }
      auto const differs = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end()).first;
      if (differs != got.end())
        return who + "differs at element " + std::to_string(static_cast<std::size_t>(differs - got.begin()) / width);
    }
    return {};
  }

 private:
  void set_up(RunSpec& spec, Rank rank) {
    bool const one_buffer = !spec.output.empty() && spec.input.data() == spec.output.data();
    inputs_[rank] = vector_of(case_.dtype, rank, ranks_, case_.elements);
    narrow_[rank] = spec.output;
    if (one_buffer) std::copy(inputs_[rank].begin(), inputs_[rank].end(), spec.output.begin());
    if (!one_buffer) spec.input = inputs_[rank];
    if (!carried_) return;
    auto const in = carried_->bytes(spec.input.size()), out = carried_->bytes(spec.output.size());
    auto& wide = wide_[rank];
    wide.resize(one_buffer ? out : in + out);
    auto const all = std::span(wide);
    if (carried_->widen(all.first(in), spec.input, nullptr).has_error()) FAIL("it cannot be widened");
    spec.dtype = carried_->dtype();
    spec.reduce = ReduceOp::sum;
    spec.sizes = carried_->sizes(spec.sizes);
    spec.input = all.first(in);
    spec.output = one_buffer ? all.first(out) : all.subspan(in);
  }

  Case const case_;
  std::uint32_t const ranks_;
  Collective collective_;
  std::optional<CarriedAverage> carried_;
  std::vector<Bytes> inputs_, wide_;
  std::vector<std::span<std::byte>> narrow_;
};

constexpr std::uint32_t ranks_max = 9;

void check_catalogue(Fleet& fleet) {
  std::uint64_t run = 0;
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for (auto const* algorithm : algorithms::all_for(op))
      for (auto const& spec : algorithms::representative_specs(*algorithm, op, fleet.ranks()))
        for (auto const dtype : all_dtypes) {
          Case c{.algorithm = algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
          c.dtype = dtype;
          c.reduce = ReduceOp::avg;
          c.elements = 61;
          c.in_place = spec.in_place;
          c.segment_bytes = 64;
          c.run = ++run;
          Average average(fleet, c);
          REQUIRE_MESSAGE(average.run(), to_string(c), " of ", fleet.ranks(), " does not end");
          auto const wrong = average.wrong();
          CHECK_MESSAGE(wrong.empty(), wrong);
        }
}

}  // namespace

TEST_CASE("over loopback, the average of numbers at the limits of their dtype is right by every algorithm" *
          doctest::test_suite("exhaustive")) {
  for (std::uint32_t ranks = 2; ranks <= ranks_max; ++ranks) {
    FleetOptions options;
    options.ranks = ranks;
    LoopbackFleet fleet(options);
    check_catalogue(fleet);
  }
}

TEST_CASE("over shared memory, the average of numbers at the limits of their dtype is right by every algorithm" *
          doctest::test_suite("exhaustive")) {
  for (std::uint32_t ranks = 2; ranks <= ranks_max; ++ranks) {
    SharedFleetOptions options;
    options.ranks = ranks;
    SharedFleet fleet(options);
    check_catalogue(fleet);
  }
}
