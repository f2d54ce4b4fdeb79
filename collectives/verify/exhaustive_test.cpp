// Proves and computes plans of every operation and algorithm, p from 1 to 64, with representative roots, arities and
// shapes, in place and not; up to 16 ranks also with the ranks at other positions.
#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "collectives/plan/positions.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/verify/problem_for_tests.hpp"
#include "collectives/verify/verify.hpp"

using namespace chorus;
using plan::Program, plan::Rank, plan::Spec;
using verify::Interpreter, verify::Problem;

namespace {

constexpr std::uint32_t max_ranks = 64;

std::vector<Program> programs_of(plan::Algorithm const& algorithm, Spec const& spec) {
  std::vector<Program> programs;
  programs.reserve(spec.ranks);
  for (Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(plan::build(algorithm, spec, rank).value());
  return programs;
}

// Returns true for powers of two and their neighbours, primes, squares and products, which have different shapes.
bool is_telling(std::uint32_t p) {
  constexpr std::array above_16{17u, 20u, 24u, 27u, 31u, 32u, 33u, 36u, 47u, 60u, 63u, 64u};
  return p <= 16 || std::find(above_16.begin(), above_16.end(), p) != above_16.end();
}

template <class Use>
void for_every_spec(Use use) {
  for (auto const* algorithm : algorithms::all())
    for (auto const op : all_ops)
      for (std::uint32_t p = 1; p <= max_ranks; ++p)
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, p)) use(*algorithm, spec);
}

// Calls `use` for specs whose ranks are in other orders than their positions. Leaves out algorithms without positions.
template <class Use>
void for_every_order(std::uint32_t max_ranks_in_order, Use use) {
  for (std::uint32_t p = 2; p <= max_ranks_in_order; ++p)
    for (auto const& order : algorithms::representative_orders(p))
      for (auto const* algorithm : algorithms::all())
        for (auto const op : all_ops)
          for (auto const& spec : algorithms::representative_specs(*algorithm, op, p)) {
            auto const listed = plan::with_positions(*algorithm, spec, order);
            if (!listed.by_position.empty()) use(*algorithm, listed);
          }
}

// Returns element counts: none, one, around p, a prime, and a multiple of all chunks for algorithms that need one.
std::vector<std::uint64_t> telling_counts(std::uint32_t p, std::uint32_t chunks) {
  return {0, 1, p - 1, p, p + 1, 131, 2 * std::uint64_t{chunks}};
}

std::vector<std::uint64_t> uneven_counts(std::uint32_t p) {
  std::vector<std::uint64_t> counts(p);
  for (std::uint32_t r = 0; r < p; ++r) counts[r] = r % 3 == 1 ? 0 : r * 7 % 5;
  return counts;
}

void compute(Interpreter& interpreter, std::span<Program const> programs, Problem const& problem) {
  auto const& spec = programs.front().spec;
  for (auto const& program : programs)
    if (plan::check(program, problem.sizes[program.rank]).has_error()) return;  // the algorithm refuses such sizes
  if (!interpreter.run(problem.inputs, problem.sizes) || !solves(interpreter, problem, spec))
    FAIL(to_string(spec) << " with " << problem.sizes.front().elements << " elements, "
                         << problem.sizes.front().counts.size() << " counts");
}

void compute_all(plan::Algorithm const& algorithm, Spec const& spec) {
  auto const programs = programs_of(algorithm, spec);
  Interpreter interpreter(programs);
  for (auto const elements : telling_counts(spec.ranks, programs.front().chunks))
    compute(interpreter, programs, Problem(spec, elements));
  if (has_blocks(spec.op) && spec.op != Op::barrier)
    compute(interpreter, programs, Problem(spec, uneven_counts(spec.ranks)));
}

}  // namespace

TEST_CASE("every plan is proved") {
  for_every_spec([](plan::Algorithm const& algorithm, Spec const& spec) {
    auto const report = verify::check(algorithm, spec);
    if (!report.ok) FAIL_CHECK(to_string(spec) << ": " << report.failure);
  });
}

TEST_CASE("every plan is proved with ranks in other orders than their positions") {
  for_every_order(16, [](plan::Algorithm const& algorithm, Spec const& spec) {
    auto const report = verify::check(algorithm, spec);
    if (!report.ok) FAIL_CHECK(to_string(spec) << ": " << report.failure);
  });
}

TEST_CASE("every plan computes its operation for no element, one, counts around p, a prime, and uneven counts") {
  for_every_spec([](plan::Algorithm const& algorithm, Spec const& spec) {
    if (is_telling(spec.ranks)) compute_all(algorithm, spec);
  });
}

TEST_CASE("every plan computes its operation with ranks in other orders than their positions") {
  for_every_order(9, compute_all);
}

TEST_CASE("every plan computes its operation in any order of segments that its dependencies allow") {
  auto const compute_shuffled = [](plan::Algorithm const& algorithm, Spec const& spec) {
    if (spec.ranks > 17 || spec.root > 2) return;
    auto const programs = programs_of(algorithm, spec);
    auto const problem = Problem(spec, 12 * std::uint64_t{programs.front().chunks});
    Interpreter interpreter(programs);
    for (std::uint32_t seed = 1; seed <= 2; ++seed)
      if (!interpreter.run_shuffled(problem.inputs, problem.sizes, 3, seed) || !solves(interpreter, problem, spec))
        FAIL(to_string(spec) << " shuffled by " << seed);
  };
  for_every_spec(compute_shuffled);
  for_every_order(6, compute_shuffled);
}

TEST_CASE("every plan reads back from its text") {
  for_every_spec([](plan::Algorithm const& algorithm, Spec const& spec) {
    if (spec.ranks != 1 && spec.ranks != 2 && spec.ranks != 5 && spec.ranks != 12) return;
    for (auto const& program : programs_of(algorithm, spec))
      REQUIRE(plan::parse_text(to_text(program)).value() == program);
  });
  for_every_order(5, [](plan::Algorithm const& algorithm, Spec const& spec) {
    for (auto const& program : programs_of(algorithm, spec))
      REQUIRE(plan::parse_text(to_text(program)).value() == program);
  });
}
