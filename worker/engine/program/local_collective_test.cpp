#include "worker/engine/program/local_collective.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "collectives/plan/positions.hpp"

using namespace chorus;
using engine::LocalBuffers;
using plan::Program, plan::Rank, plan::Spec;
using Values = std::vector<std::int64_t>;

namespace {

std::span<std::byte const> bytes_of(Values const& values) { return std::as_bytes(std::span(values)); }
std::span<std::byte> bytes_of(Values& values) { return std::as_writable_bytes(std::span(values)); }

std::vector<Program> programs_of(plan::Algorithm const& algorithm, Spec const& spec) {
  std::vector<Program> programs;
  for (Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(plan::build(algorithm, spec, rank).value());
  return programs;
}

Values input_of(Rank rank, std::size_t elements) {
  Values values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<std::int64_t>(rank * 1000 + i);
  return values;
}

Values sum_of(std::uint32_t ranks, std::size_t elements) {
  Values sum(elements);
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto const input = input_of(rank, elements);
    std::transform(sum.begin(), sum.end(), input.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

// Returns the outputs of all ranks after their programs have run.
std::vector<Values> results(std::vector<Program> const& programs, plan::Sizes const& sizes) {
  std::vector<Values> inputs, outputs;
  std::vector<LocalBuffers> buffers;
  for (auto const& program : programs) {
    auto const layouts = plan::layouts(program, sizes);
    bool const is_one = program.spec.in_place && !program.input.empty() && !program.output.empty();
    inputs.push_back(input_of(program.rank, plan::input_elements(program, layouts)));
    outputs.push_back(is_one ? inputs.back() : Values(plan::output_elements(program, layouts)));
  }
  for (auto const& program : programs) {
    bool const is_one = program.spec.in_place && !program.input.empty() && !program.output.empty();
    auto& output = outputs[program.rank];
    buffers.push_back({bytes_of(std::as_const(is_one ? output : inputs[program.rank])), bytes_of(output)});
  }
  engine::run_local_collective(programs, Dtype::i64, ReduceOp::sum, sizes, buffers);
  auto const ranks = static_cast<std::uint32_t>(programs.size());
  auto const blocks = sizes.counts.empty() ? plan::Layout(sizes.elements, ranks) : plan::Layout(sizes.counts, ranks);
  for (auto const& program : programs) {  // in place, a block is a part of the output; no rank owns the rest
    if (plan::holding(program.spec, program.rank, program.chunks).output == program.output) continue;
    auto const own = blocks.range(program.rank);
    auto const begin = outputs[program.rank].begin();
    outputs[program.rank] = {begin + static_cast<std::ptrdiff_t>(own.begin),
                             begin + static_cast<std::ptrdiff_t>(own.end)};
  }
  return outputs;
}

}  // namespace

TEST_CASE("run_local_collective: the result of a rank does not depend on its position") {
  constexpr std::uint32_t ranks = 6;
  auto compared = 0;
  for (auto const op : all_ops)
    for (auto const* algorithm : algorithms::all_for(op))
      for (auto const& spec : algorithms::representative_specs(*algorithm, op, ranks)) {
        auto const by_rank = programs_of(*algorithm, spec);
        for (plan::Sizes const& sizes : {plan::Sizes{4 * by_rank[0].chunks, {}, {}}, plan::Sizes{1009, {}, {}},
                                         plan::Sizes{0, {3, 0, 7, 1, 0, 40}, {}}}) {
          // Some algorithms take only equal blocks, others only uneven ones.
          if (plan::check(by_rank[0], sizes).has_error()) continue;
          auto const expected = results(by_rank, sizes);
          for (auto const& order : algorithms::representative_orders(ranks)) {
            auto const listed = plan::with_positions(*algorithm, spec, order);
            if (listed.by_position.empty()) continue;
            CAPTURE(to_string(listed));
            REQUIRE(results(programs_of(*algorithm, listed), sizes) == expected);
            ++compared;
          }
        }
      }
  CHECK(compared > 1000);
}

TEST_CASE("run_local_collective: every algorithm reduces to the root and broadcasts from the root") {
  for (std::uint32_t ranks = 1; ranks <= 9; ++ranks)
    for (std::size_t const elements : {0, 1, 5, 40000})
      for (auto const op : {Op::reduce, Op::broadcast})
        for (auto const* algorithm : algorithms::all_for(op)) {
          Spec const spec{.op = op, .algorithm = std::string(algorithm->name), .ranks = ranks, .root = ranks / 2};
          auto const programs = programs_of(*algorithm, spec);
          std::vector<Values> inputs(ranks), outputs(ranks);
          std::vector<LocalBuffers> buffers;
          for (Rank rank = 0; rank < ranks; ++rank) {
            auto const held = plan::holding(spec, rank, 1);
            if (!held.input.empty()) inputs[rank] = input_of(rank, elements);
            if (!held.output.empty()) outputs[rank].resize(elements);
            buffers.push_back({bytes_of(std::as_const(inputs[rank])), bytes_of(outputs[rank])});
          }
          engine::run_local_collective(programs, Dtype::i64, ReduceOp::sum, {elements, {}, {}}, buffers);
          CAPTURE(to_string(spec));
          if (op == Op::reduce) REQUIRE(outputs[spec.root] == sum_of(ranks, elements));
          for (Rank rank = 0; op == Op::broadcast && rank < ranks; ++rank)
            REQUIRE(outputs[rank] == input_of(spec.root, elements));
        }
}

TEST_CASE("run_local_collective: all_reduce gives the same result in place and out of place") {
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce))
    for (auto const& spec : algorithms::representative_specs(*algorithm, Op::all_reduce, 5)) {
      auto const programs = programs_of(*algorithm, spec);
      std::vector<Values> inputs, outputs(5, Values(777));
      std::vector<LocalBuffers> buffers;
      for (Rank rank = 0; rank < 5; ++rank) inputs.push_back(input_of(rank, 777));
      for (Rank rank = 0; rank < 5; ++rank) {
        auto& out = spec.in_place ? inputs[rank] : outputs[rank];
        buffers.push_back({bytes_of(std::as_const(inputs[rank])), bytes_of(out)});
      }
      engine::run_local_collective(programs, Dtype::i64, ReduceOp::sum, {777, {}, {}}, buffers);
      for (Rank rank = 0; rank < 5; ++rank) REQUIRE((spec.in_place ? inputs[rank] : outputs[rank]) == sum_of(5, 777));
    }
}

TEST_CASE("run_local_collective: sums of f16 and bf16 that are longer than the rings of their partial sums") {
  constexpr std::size_t elements = 1'500'000;
  std::uint16_t const one = 0x3c00, three = 0x4200;
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    Spec const spec{.op = Op::all_reduce, .algorithm = std::string(algorithm->name), .ranks = 3};
    if (algorithm->check(spec).has_error()) continue;
    auto const programs = programs_of(*algorithm, spec);
    std::vector<std::uint16_t> const ones(elements, one);
    std::vector<std::vector<std::uint16_t>> outputs(3, std::vector<std::uint16_t>(elements));
    std::vector<LocalBuffers> buffers;
    for (auto& output : outputs)
      buffers.push_back({std::as_bytes(std::span(ones)), std::as_writable_bytes(std::span(output))});
    engine::run_local_collective(programs, Dtype::f16, ReduceOp::sum, {elements, {}, {}}, buffers);
    CAPTURE(to_string(spec));
    for (auto const& output : outputs) CHECK(output == std::vector<std::uint16_t>(elements, three));
  }
}
