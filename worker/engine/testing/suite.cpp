#include "worker/engine/testing/suite.hpp"

#include <doctest/doctest.h>

#include <array>
#include <deque>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"

namespace chorus::engine::testing {
namespace {

constexpr std::array dtypes{Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64};
constexpr std::array operations{ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::prod};

// Every (dtype, operation) pair in turn, so that neighbouring cases differ.
void choose_operation(Case& c, std::uint64_t n) {
  c.dtype = dtypes[n % dtypes.size()];
  c.reduce = operations[n / dtypes.size() % operations.size()];
}

void check(Fleet& fleet, Case const& c) {
  Collective collective(fleet, c);
  REQUIRE_MESSAGE(collective.run(), to_string(c), " of ", fleet.ranks(), " does not end");
  auto const wrong = collective.wrong();
  REQUIRE_MESSAGE(wrong.empty(), wrong);
}

}  // namespace

namespace {

// Every operation and algorithm of this fleet's size, in turn with another root, arity, shape, segment, dtype and so
// on.
class EveryPlan {
 public:
  explicit EveryPlan(Fleet& fleet) : fleet_(fleet) {}

  void check_all(std::uint64_t elements, std::uint64_t segment_bytes, std::uint64_t& n) {
    for (auto const* algorithm : algorithms::all())
      for (auto const op : all_ops) {
        auto const specs = algorithms::representative_specs(*algorithm, op, fleet_.ranks());
        for (bool const in_place : {false, true}) {
          if (specs.empty()) continue;
          auto const& spec = specs[n * 7 % specs.size()];
          Case c{.algorithm = algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
          c.elements = elements;
          c.segment_bytes = segment_bytes;
          c.window = 1 + static_cast<std::uint32_t>(n % 4);
          c.in_place = in_place;
          c.run = ++n;
          choose_operation(c, n);
          check_sized(c, elements);
        }
      }
  }

 private:
  // Even, or uneven where the operation has blocks; and equal blocks for those that need them.
  void check_sized(Case c, std::uint64_t elements) {
    auto const ranks = fleet_.ranks();
    if (c.op == Op::barrier) {
      c.dtype = Dtype::i32;
      c.elements = ranks;
    } else if (has_blocks(c.op) && c.run % 2 == 0 && !needs_equal(c)) {
      for (std::uint32_t block = 0; block < ranks; ++block)
        c.counts.push_back(block % 3 == 1 ? 0 : elements % (7 + block));
      c.elements = 0;
    } else if (needs_equal(c)) {
      c.elements = elements / ranks * ranks;
    }
    if (c.op == Op::all_to_all && c.in_place && c.counts.empty()) c.elements = elements / ranks * ranks;
    check(fleet_, c);
  }

  [[nodiscard]] bool needs_equal(Case const& c) const {
    plan::Spec const spec{c.op, std::string(c.algorithm->name), fleet_.ranks(), c.root, c.arity, c.in_place, c.shape};
    return c.algorithm->equal_chunks != nullptr && c.algorithm->equal_chunks(spec);
  }

  Fleet& fleet_;
};

}  // namespace

void check_every_shape(MakeFleet const& make_fleet, Depth depth) {
  std::uint64_t n = 0;
  for (std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 13u, 16u}) {
    if (depth == Depth::few && ranks != 2 && ranks != 3 && ranks != 5 && ranks != 8) continue;
    auto const fleet = make_fleet(ranks);
    EveryPlan every(*fleet);
    for (std::uint64_t elements : {0ul, 1ul, ranks - 1ul, 0ul + ranks, ranks + 1ul, 1009ul, 100003ul})
      for (std::uint64_t segment_bytes : {64ul, 4096ul, 1ul << 20}) {
        if (elements == 100003 && segment_bytes != 4096) continue;  // a million frames teach no more
        bool const tells = (elements == 1009 && segment_bytes == 64) ||
                           ((elements == ranks + 1 || elements == 100003) && segment_bytes == 4096);
        if (depth != Depth::every && !tells) continue;
        if (depth == Depth::few && elements == 1009) continue;
        every.check_all(elements, segment_bytes, n);
      }
  }
  // And all pairs of dtype and operation, for one shape that has everything: unequal chunks and several segments.
  auto const fleet = make_fleet(5);
  for (std::uint64_t pair = 0; pair < dtypes.size() * operations.size(); ++pair)
    for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
      Case c;
      c.algorithm = algorithm;
      c.elements = 1009;
      c.segment_bytes = 256;
      c.run = ++n;
      choose_operation(c, pair);
      check(*fleet, c);
    }
}

void check_hundred_in_a_row(MakeFleet const& make_fleet) {
  auto const fleet = make_fleet(4);
  auto const algorithms = algorithms::all_for(Op::all_reduce);
  for (std::uint64_t run = 1; run <= 100; ++run) {
    Case c;
    c.algorithm = algorithms[run % algorithms.size()];
    c.elements = 1 + run * 37 % 3000;
    c.run = run;
    choose_operation(c, run);
    check(*fleet, c);
  }
}

void check_several_at_once(MakeFleet const& make_fleet) {
  auto const fleet = make_fleet(4);
  std::deque<Collective> collectives;
  auto const algorithms = algorithms::all_for(Op::all_reduce);
  for (std::uint64_t run = 1; run <= 12; ++run) {
    Case c;
    c.algorithm = algorithms[run % algorithms.size()];
    c.elements = run % 3 == 0 ? 50021 : 400 * run;
    c.segment_bytes = 1024 * run;
    c.run = run;
    choose_operation(c, run);
    collectives.emplace_back(*fleet, c);
  }
  // Every rank starts them in another order.
  for (plan::Rank rank = 0; rank < fleet->ranks(); ++rank)
    for (std::size_t k = 0; k < collectives.size(); ++k)
      collectives[(k * 5 + rank * 3) % collectives.size()].start(rank);
  for (auto& collective : collectives) {
    REQUIRE(collective.finish());
    auto const wrong = collective.wrong();
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

void check_late_starters(MakeFleet const& make_fleet) {
  for (plan::Rank late = 0; late < 5; ++late) {
    auto const fleet = make_fleet(5);
    std::uint64_t run = 0;
    for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
      for (std::uint64_t elements : {1ul, 100ul, 20011ul}) {
        Case c;
        c.algorithm = algorithm;
        c.elements = elements;
        c.segment_bytes = 512;
        c.run = ++run;
        Collective collective(*fleet, c);
        for (plan::Rank rank = 0; rank < 5; ++rank)
          if (rank != late) collective.start(rank);
        fleet->let_move();
        CHECK(collective.ended() < 5);
        collective.start(late);
        REQUIRE(collective.finish());
        auto const wrong = collective.wrong();
        CHECK_MESSAGE(wrong.empty(), wrong);
      }
  }
}

}  // namespace chorus::engine::testing
