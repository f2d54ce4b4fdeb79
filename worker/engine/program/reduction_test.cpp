#include "worker/engine/program/reduction.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::engine;

namespace {

using plan::Opcode;

// A program of one instruction on one of four ranks.
plan::Program program_of(Opcode op, std::uint8_t flags, Op collective = Op::all_reduce) {
  plan::Program program;
  program.spec.op = collective;
  program.spec.ranks = 4;
  plan::Instruction instruction;
  instruction.op = op;
  instruction.flags = flags;
  program.instructions.push_back(instruction);
  return program;
}

// Memory of an instruction; only its addresses count.
struct Places {
  std::byte operand, other, dst, partial;
  [[nodiscard]] Operands combined() { return {&operand, &other, &dst, &partial}; }
  [[nodiscard]] Operands moved() { return {nullptr, &other, &dst, &partial}; }
};

}  // namespace

TEST_CASE("what is received or copied only moves") {
  Places at;
  for (auto const op : {Opcode::recv, Opcode::copy}) {
    auto const program = program_of(op, 0);
    Reductions const reductions(program, Dtype::f32, ReduceOp::avg);
    auto const reduction = reductions.of(0, at.moved());
    CHECK(reduction.only_moves);
    CHECK(reduction.source_count == 1);
    CHECK(reduction.sources[0] == &at.other);
    CHECK(reduction.result == &at.dst);
  }
}

TEST_CASE("the operand comes before the other term, and a sum is not divided") {
  Places at;
  auto const program = program_of(Opcode::recv_reduce, plan::final_flag);
  Reductions const reductions(program, Dtype::f32, ReduceOp::sum);
  auto const reduction = reductions.of(0, at.combined());
  CHECK(!reduction.only_moves);
  CHECK(reduction.source_count == 2);
  CHECK(reduction.sources[0] == &at.operand);
  CHECK(reduction.sources[1] == &at.other);
  CHECK(reduction.result == &at.dst);
  CHECK(reduction.how.divisor == 1);
  CHECK(reduction.how.weights == nullptr);
}

TEST_CASE("an average of floats scales contributions of one rank, not partial sums, and divides once it is complete") {
  Places at;
  for (bool const partial_operand : {false, true})
    for (bool const partial_other : {false, true})
      for (bool const is_final : {false, true}) {
        auto const flags = (partial_operand ? plan::partial_operand_flag : 0) |
                           (partial_other ? plan::partial_other_flag : 0) | (is_final ? plan::final_flag : 0);
        auto const program = program_of(Opcode::reduce, static_cast<std::uint8_t>(flags));
        Reductions const reductions(program, Dtype::f32, ReduceOp::avg);
        auto const reduction = reductions.of(0, at.combined());
        REQUIRE(reduction.how.weights != nullptr);
        CHECK(reduction.how.weights[0] == (partial_operand ? 1 : 0.25F));
        CHECK(reduction.how.weights[1] == (partial_other ? 1 : 0.25F));
        CHECK(reduction.how.divisor == (is_final ? 4 : 1));
        CHECK(reduction.how.scale == (is_final ? 4 : 1));
      }
}

TEST_CASE("an average of integers is divided where it is complete, also if its last step only moves it") {
  Places at;
  auto const program = program_of(Opcode::copy, plan::final_flag);
  Reductions const reductions(program, Dtype::i32, ReduceOp::avg);
  auto const reduction = reductions.of(0, at.moved());
  CHECK(!reduction.only_moves);
  CHECK(reduction.how.divisor == 4);
  CHECK(reduction.how.weights == nullptr);
}

TEST_CASE("an average whose divisor is 1 stays scaled") {
  Places at;
  auto const program = program_of(Opcode::reduce, plan::final_flag);
  Reductions const reductions(program, Dtype::f32, ReduceOp::avg, Average{1, 8});
  auto const reduction = reductions.of(0, at.combined());
  CHECK(reduction.how.divisor == 1);
  CHECK(reduction.how.scale == 1);
  CHECK(reduction.how.weights[0] == 0.125F);
  // The same average is no matter of a sum.
  Reductions const sums(program, Dtype::f32, ReduceOp::sum, Average{4, 8});
  CHECK(sums.of(0, at.combined()).how.divisor == 1);
  CHECK(sums.of(0, at.combined()).how.weights == nullptr);
}

TEST_CASE("partial sums of f16 and bf16 are f32, those of f32 have no other place") {
  Places at;
  auto const program = program_of(Opcode::recv_reduce, plan::wide_operand_flag | plan::wide_result_flag);
  for (auto const dtype : {Dtype::f16, Dtype::bf16}) {
    Reductions const reductions(program, dtype, ReduceOp::sum);
    auto const reduction = reductions.of(0, at.combined());
    CHECK(reduction.how.wide_source);
    CHECK(reduction.how.wide_results);
    CHECK(reduction.sources[0] == &at.partial);
    CHECK(reduction.result == &at.partial);
  }
  Reductions const reductions(program, Dtype::f32, ReduceOp::sum);
  auto const reduction = reductions.of(0, at.combined());
  CHECK(!reduction.how.wide_source);
  CHECK(reduction.sources[0] == &at.operand);
  CHECK(reduction.result == &at.dst);
}

TEST_CASE("the first term of an f32 partial sum is widened, and a gathered one is not") {
  Places at;
  auto const sum = program_of(Opcode::copy, plan::wide_result_flag);
  Reductions const reductions(sum, Dtype::bf16, ReduceOp::sum);
  auto const widened = reductions.of(0, at.moved());
  CHECK(!widened.only_moves);
  CHECK(!widened.how.wide_source);
  CHECK(widened.how.wide_results);
  CHECK(widened.result == &at.partial);
  auto const gather = program_of(Opcode::copy, plan::wide_result_flag, Op::all_gather);
  Reductions const none(gather, Dtype::bf16, ReduceOp::sum);
  CHECK(none.of(0, at.moved()).only_moves);
}
