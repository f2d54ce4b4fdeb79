#include "worker/engine/testing/cases/suite.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "collectives/plan/positions.hpp"
#include "worker/engine/testing/cases/forms_seen.hpp"

namespace chorus::engine::testing {
namespace {

void check(Fleet& fleet, Case const& c) {
  Collective collective(fleet, c);
  REQUIRE_MESSAGE(collective.run(), to_string(c), " of ", fleet.ranks(), " does not end");
  auto const wrong = collective.wrong();
  REQUIRE_MESSAGE(wrong.empty(), wrong);
}

void set_reduction(Case& c, std::uint64_t n) {
  auto const reductions = all_reductions();
  auto const [dtype, reduce] = reductions[n % reductions.size()];
  c.dtype = dtype;
  c.reduce = reduce;
}

// Draws the cases of one kind of link. The properties of a case are drawn independently, so that all combinations
// occur.
class EveryPlan {
 public:
  // Runs every operation with every algorithm of the fleet's size, in place and out of place, in turn with even and
  // uneven blocks. Root, arity, shape, window, dtype and reduction are drawn.
  void check_all(Fleet& fleet, std::uint64_t elements, std::uint64_t segment_bytes) {
    ++visits_;
    for (auto const op : all_ops)
      for (auto const* algorithm : algorithms::all_for(op))
        for (bool const in_place : {false, true}) {
          auto c = some_case(fleet, *algorithm, op, in_place);
          if (!c) continue;
          c->segment_bytes = segment_bytes;
          set_reduction(*c, below(1u << 16));
          check_sized(fleet, *c, elements, visits_ % 2 == (in_place ? 0 : 1));
        }
  }

  // Swaps even and uneven blocks for the next fleet.
  void turn() { ++visits_; }

  // Runs every dtype and reduction in every operation that reduces: by every algorithm, or by one algorithm in turn.
  void check_reductions(Fleet& fleet, bool by_every_algorithm) {
    auto const reductions = all_reductions().size();
    for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter}) {
      auto const algorithms = algorithms::all_for(op);
      for (std::size_t reduction = 0; reduction < reductions; ++reduction)
        for (std::size_t a = 0; a < (by_every_algorithm ? algorithms.size() : 1); ++a) {
          auto const& algorithm = *algorithms[(reduction + a) % algorithms.size()];
          auto c = some_case(fleet, algorithm, op, below(2) == 1);
          if (!c) continue;
          c->segment_bytes = 256;
          set_reduction(*c, reduction);
          check_sized(fleet, *c, 1009, below(2) == 1);
        }
    }
  }

  void check_all_seen() const { seen_.check_complete(); }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  std::optional<Case> some_case(Fleet& fleet, plan::Algorithm const& algorithm, Op op, bool in_place) {
    auto const specs = algorithms::representative_specs(algorithm, op, fleet.ranks());
    if (specs.empty()) return {};
    auto const& spec = specs[below(static_cast<std::uint32_t>(specs.size()))];
    Case c{.algorithm = &algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
    c.by_position = some_positions(algorithm, spec);
    c.in_place = in_place;
    c.window = 1 + below(4);
    c.run = ++runs_;
    return c;
  }

  // Returns other positions for every third case whose algorithm knows positions.
  std::vector<plan::Rank> some_positions(plan::Algorithm const& algorithm, plan::Spec const& spec) {
    auto const orders = algorithms::representative_orders(spec.ranks);
    if (orders.empty() || random_order_() % 3 != 0) return {};
    return plan::with_positions(algorithm, spec, orders[random_order_() % orders.size()]).by_position;
  }

  // Runs the case with uneven blocks where the operation has blocks, and with equal blocks for algorithms that need
  // them.
  void check_sized(Fleet& fleet, Case c, std::uint64_t elements, bool uneven) {
    auto const ranks = fleet.ranks();
    c.elements = elements;
    if (c.op == Op::barrier) {
      c.dtype = Dtype::i32;
      c.elements = ranks;
    } else if (needs_equal(c, ranks) || (c.op == Op::all_to_all && c.in_place && !uneven)) {
      c.elements = elements / ranks * ranks;
    } else if (has_blocks(c.op) && uneven) {
      for (std::uint32_t block = 0; block < ranks; ++block)
        c.counts.push_back(block % 3 == 1 ? 0 : elements * (1 + block % 4) / (2 * ranks) + elements % (7 + block));
      c.elements = 0;
    }
    check(fleet, c);
    seen_.add(c);
    // A small call that repeats may use coalesced frames.
    bool const is_small = ranks <= 5 && elements <= 1009 && c.segment_bytes >= 4096;
    for (int again = 0; again < (is_small ? 2 : 0); ++again) {
      c.run = ++runs_;
      check(fleet, c);
    }
  }

  [[nodiscard]] static bool needs_equal(Case const& c, std::uint32_t ranks) {
    plan::Spec const spec{c.op, std::string(c.algorithm->name), ranks, c.root, c.arity, c.in_place, c.shape};
    return c.algorithm->equal_chunks != nullptr && c.algorithm->equal_chunks(spec);
  }

  std::minstd_rand random_{20'261'122}, random_order_{38};
  std::uint64_t runs_ = 0, visits_ = 0;
  FormsSeen seen_;
};

bool is_one_of(std::uint32_t ranks, std::initializer_list<std::uint32_t> few) {
  return std::find(few.begin(), few.end(), ranks) != few.end();
}

}  // namespace

void check_every_shape(MakeFleet const& make_fleet, Depth depth) {
  EveryPlan every;
  for (std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 13u, 16u}) {
    bool const among_few = is_one_of(ranks, {2, 3, 5, 8});
    if (depth == Depth::few && !among_few) continue;
    auto const fleet = make_fleet(ranks);
    every.turn();
    for (std::uint64_t elements : {0ul, 1ul, ranks - 1ul, 0ul + ranks, ranks + 1ul, 1009ul, 100003ul})
      for (std::uint64_t segment_bytes : {64ul, 4096ul, 1ul << 20}) {
        if (elements == 100003 && segment_bytes != 4096) continue;  // a million frames would show nothing more
        bool const tells = (elements == 1009 && segment_bytes == 64) ||
                           ((elements == ranks + 1 || elements == 100003) && segment_bytes == 4096);
        if (depth != Depth::every && !tells) continue;
        bool const shallow = depth == Depth::few || depth == Depth::groups;
        if (shallow && (elements == 1009 || (elements == 100003 && !among_few))) continue;
        every.check_all(*fleet, elements, segment_bytes);
      }
  }
  // All dtypes and reductions, for one shape with unequal chunks and several segments.
  every.check_reductions(*make_fleet(5), depth != Depth::few);
  every.check_all_seen();
}

void check_hundred_in_a_row(MakeFleet const& make_fleet) {
  auto const fleet = make_fleet(4);
  auto const algorithms = algorithms::all_for(Op::all_reduce);
  for (std::uint64_t run = 1; run <= 100; ++run) {
    Case c;
    c.algorithm = algorithms[run % algorithms.size()];
    c.elements = 1 + run * 37 % 3000;
    c.run = run;
    set_reduction(c, run);
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
    set_reduction(c, run);
    collectives.emplace_back(*fleet, c);
  }
  // Every rank starts the collectives in another order.
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
