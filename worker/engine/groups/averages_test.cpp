// An average is the same by every algorithm: checked over the catalogue, at the limits of every dtype.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "worker/engine/groups/carried.hpp"
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

// The largest, the smallest normal and, for halves, the smallest number, and 1, and ordinary values. Those of f32 and
// f64 have all bits set, or no pattern, so that multiples of them are rounded.
Telling telling_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return {{0x7fefffffffffffff, 0xffefffffffffffff, 0x7fee42d130773b76, 0x3fb999999999999a, 0xc00921fb54442d18,
               0x3fefffffffffffff, 0x3ff5555555555557, 0x10000000000000, 0x8000000000000000, 0x3ff0000000000000},
              {0x7fe8000000000000, 0xffe8000000000000},
              16};
    case Dtype::f32:
      return {{0x7f7fffff, 0xff7fffff, 0x7f61b1e6, 0x3dcccccd, 0xc0490fdb, 0x3f7fffff, 0x3faaaaab, 0x00800000,
               0x80000000, 0x3f800000},
              {0x7f400000, 0xff400000},
              16};
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
  auto const telling = telling_of(dtype);
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

// Numbers that differ by up to two in the last place, so that some sums are those of equal numbers by chance.
Bytes close_vector_of(Dtype dtype, Rank rank, std::uint64_t elements) {
  auto const width = element_bytes(dtype);
  std::mt19937_64 common(1), own(rank + 2);
  Bytes bytes(elements * width);
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto const bits = (dtype == Dtype::f64 ? 0x3ff0000000000000 : 0x3f800000) + common() % 0x7ffffd + own() % 3;
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

// Averages as callers make them: they widen before, and divide after, if the run does not.
class CallersAverage {
 public:
  enum class Numbers : bool { telling, close };
  CallersAverage(Fleet& fleet, Case c, Numbers numbers = Numbers::telling)
      : case_(c), ranks_(fleet.ranks()), numbers_(numbers), collective_(fleet, c, fleet.now()) {
    auto const& program = *collective_.spec(0).program;
    carried_ = CarriedAverage::of(c.reduce, c.dtype, *c.algorithm, program.spec);
    narrow_.resize(ranks_);
    inputs_.resize(ranks_);
    wide_.resize(ranks_);
    for (Rank rank = 0; rank < ranks_; ++rank) set_up(collective_.spec(rank), rank);
  }

  [[nodiscard]] bool run() { return collective_.run(); }

  // Empty, or a rank whose result is not that of rank 0.
  [[nodiscard]] std::string disagreement() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (carried_ && carried_->narrow(narrow_[rank], collective_.spec(rank).output, nullptr).has_error())
        return "it cannot be narrowed";
      if (!std::ranges::equal(narrow_[rank], narrow_[0]))
        return to_string(case_) + " of " + std::to_string(ranks_) + ", rank " + std::to_string(rank);
    }
    return {};
  }

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
    inputs_[rank] = numbers_ == Numbers::telling ? vector_of(case_.dtype, rank, ranks_, case_.elements)
                                                 : close_vector_of(case_.dtype, rank, case_.elements);
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
  Numbers const numbers_;
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
          CallersAverage average(fleet, c);
          REQUIRE_MESSAGE(average.run(), to_string(c), " of ", fleet.ranks(), " does not end");
          auto const wrong = average.wrong();
          CHECK_MESSAGE(wrong.empty(), wrong);
          if (op != Op::all_reduce || (dtype != Dtype::f32 && dtype != Dtype::f64)) continue;
          c.run = ++run;
          c.elements = 999;
          CallersAverage close(fleet, c, CallersAverage::Numbers::close);
          REQUIRE(close.run());
          auto const disagreement = close.disagreement();
          CHECK_MESSAGE(disagreement.empty(), disagreement);
        }
}

}  // namespace

TEST_CASE(
    "over loopback, the average of equal numbers, also at the limits of their dtype, is right by every algorithm" *
    doctest::test_suite("exhaustive")) {
  for (std::uint32_t ranks = 2; ranks <= ranks_max; ++ranks) {
    FleetOptions options;
    options.ranks = ranks;
    LoopbackFleet fleet(options);
    check_catalogue(fleet);
  }
}

TEST_CASE(
    "over shared memory, the average of equal numbers, also at the limits of their dtype, is right by every algorithm" *
    doctest::test_suite("exhaustive")) {
  for (std::uint32_t ranks = 2; ranks <= ranks_max; ++ranks) {
    SharedFleetOptions options;
    options.ranks = ranks;
    SharedFleet fleet(options);
    check_catalogue(fleet);
  }
}

TEST_CASE("among 16 ranks, algorithms that add in pairs or one by one find the average of equal f32 in f32" *
          doctest::test_suite("exhaustive")) {
  FleetOptions options;
  options.ranks = 16;
  LoopbackFleet fleet(options);
  std::uint64_t run = 0;
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for (auto const* algorithm : algorithms::all_for(op))
      for (auto const& spec : algorithms::representative_specs(*algorithm, op, fleet.ranks())) {
        if (plan::summation_of(*algorithm, spec) == plan::Summation::any) continue;
        Case c{.algorithm = algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
        c.reduce = ReduceOp::avg;
        c.elements = 61;
        c.in_place = spec.in_place;
        c.run = ++run;
        CHECK_FALSE(CarriedAverage::of(c.reduce, c.dtype, *algorithm, spec).has_value());
        CallersAverage average(fleet, c);
        REQUIRE(average.run());
        auto const wrong = average.wrong();
        CHECK_MESSAGE(wrong.empty(), wrong);
      }
}

TEST_CASE("an average with codes between groups is carried as one without where the plan has no codes") {
  Compression const between(WireFormat::bf16, Level::host);
  auto const is_carried = [&](plan::Algorithm const& algorithm, std::vector<std::uint32_t> shape) {
    plan::Spec const spec{
        .op = Op::all_reduce, .algorithm = std::string(algorithm.name), .ranks = 6, .shape = std::move(shape)};
    return Carried::of(between, ReduceOp::avg, Dtype::f32, algorithm, spec, {100, {}, {}}).has_value();
  };
  CHECK(is_carried(algorithms::bcube, {}));
  CHECK_FALSE(is_carried(algorithms::ring, {}));
  CHECK_FALSE(is_carried(algorithms::grouped_allpairs, {2, 2, 2}));
}
