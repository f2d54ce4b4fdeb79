// Every p from 1 to 64, every root, arities 2 to 8, in place and not: proved, and computed on real numbers.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/text.hpp"
#include "collectives/verify/interpreter_for_tests.hpp"
#include "collectives/verify/verify.hpp"

using namespace chorus;
using plan::Program, plan::Rank, plan::Spec;
using Numbers = verify::Interpreter::Numbers;

namespace {

constexpr std::uint32_t max_ranks = 64;

std::vector<Program> programs_of(plan::Algorithm const& algorithm, Spec const& spec) {
  std::vector<Program> programs;
  programs.reserve(spec.ranks);
  for (Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(plan::build(algorithm, spec, rank).value());
  return programs;
}

// Calls `use` with every spec that makes another plan. A ring knows no root and no arity.
template <class Use>
void for_every_spec(plan::Algorithm const& algorithm, Use use) {
  for (std::uint32_t p = 1; p <= max_ranks; ++p)
    for (Rank root = 0; root < (algorithm.rooted ? p : 1); ++root)
      for (std::uint32_t arity = 2; arity <= (algorithm.uses_arity ? 8 : 2); ++arity)
        for (bool in_place : {false, true})
          use(Spec{Op::all_reduce, std::string(algorithm.name), p, root, arity, in_place});
}

// Inputs are multiples of p, so that the average is exact.
struct Problem {
  Problem(std::uint32_t p, std::uint64_t elements) : inputs(p, Numbers(elements)), expected(elements) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      for (Rank rank = 0; rank < p; ++rank) {
        inputs[rank][i] = std::int64_t{p} * (std::int64_t{rank} * 1009 + static_cast<std::int64_t>(i * i));
        expected[i] += inputs[rank][i];
      }
      expected[i] /= p;
    }
  }
  std::vector<Numbers> inputs;
  Numbers expected;
};

// One problem for each count: none, one, around p and a prime.
std::vector<Problem> problems_for(std::uint32_t p) {
  std::vector<Problem> problems;
  for (std::uint64_t elements : {0u, 1u, p - 1, p, p + 1, 131u}) problems.emplace_back(p, elements);
  return problems;
}

bool right_after(verify::Interpreter& interpreter, Problem const& problem, bool in_place) {
  for (Rank rank = 0; rank < problem.inputs.size(); ++rank) {
    if (interpreter.output(rank) != problem.expected) return false;
    if (!in_place && interpreter.input(rank) != problem.inputs[rank]) return false;  // a retry must find it intact
  }
  return true;
}

}  // namespace

TEST_CASE("every plan is proved") {
  auto plans = 0;
  for (auto const* algorithm : algorithms::all())
    for_every_spec(*algorithm, [&](Spec const& spec) {
      auto const report = verify::check(*algorithm, spec);
      if (!report.ok) FAIL(to_string(spec) << ": " << report.failure);
      ++plans;
    });
  CHECK(plans == 2 * (2080 + 7 * 2080 + 64));
}

TEST_CASE("every plan computes, for counts around p, none, one and a prime") {
  for (auto const* algorithm : algorithms::all()) {
    std::vector<Problem> problems;
    for_every_spec(*algorithm, [&](Spec const& spec) {
      if (problems.empty() || problems.front().inputs.size() != spec.ranks) problems = problems_for(spec.ranks);
      auto const programs = programs_of(*algorithm, spec);
      verify::Interpreter interpreter(programs);
      for (auto const& problem : problems)
        if (!interpreter.run(problem.inputs) || !right_after(interpreter, problem, spec.in_place))
          FAIL(to_string(spec) << " with " << problem.expected.size() << " elements");
    });
  }
}

TEST_CASE("every plan computes in any order of segments that its dependencies allow") {
  for (auto const* algorithm : algorithms::all())
    for_every_spec(*algorithm, [&](Spec const& spec) {
      if (spec.ranks > 24 || spec.root > 2) return;
      auto const programs = programs_of(*algorithm, spec);
      auto const problem = Problem(spec.ranks, 131);
      verify::Interpreter interpreter(programs);
      for (std::uint32_t seed = 1; seed <= 3; ++seed)
        if (!interpreter.run_shuffled(problem.inputs, 3, seed) || !right_after(interpreter, problem, spec.in_place))
          FAIL(to_string(spec) << " shuffled by " << seed);
    });
}

TEST_CASE("every plan reads back from its text") {
  for (auto const* algorithm : algorithms::all())
    for (std::uint32_t p : {1u, 2u, 5u, 64u})
      for (auto const& program :
           programs_of(*algorithm, {.algorithm = std::string(algorithm->name), .ranks = p, .root = p / 2}))
        REQUIRE(plan::parse_text(to_text(program)).value() == program);
}
