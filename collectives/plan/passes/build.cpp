#include <utility>

#include "collectives/core/assert.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/plan/passes/passes.hpp"
#include "collectives/plan/positions.hpp"

namespace chorus::plan {
namespace {

// Asserts that the chunks and the peer of an author's instruction exist.
void check_exists(Program const& program, Instruction const& instruction) {
  auto const holds = [&](Buffer buffer, std::uint32_t chunk) { return in_bounds(program, buffer, chunk, instruction); };
  CHORUS_ASSERT(instruction.chunks >= 1 && instruction.stride >= 1, "an instruction moves distinct chunks");
  CHORUS_ASSERT(!instruction.reads_src() || holds(instruction.src, instruction.src_chunk),
                "chunks that are read lie within their buffer");
  CHORUS_ASSERT(!instruction.writes_dst() || holds(instruction.dst, instruction.dst_chunk),
                "chunks that are written lie within their buffer");
  if (instruction.op == Opcode::send || instruction.receives())
    CHORUS_ASSERT(instruction.peer < program.spec.ranks && instruction.peer != program.rank,
                  "the peer is another rank");
}

void generate(Algorithm const& algorithm, Program& program) {
  auto const rounds = algorithm.rounds(program.spec, program.rank);
  Sink sink;
  program.round_begin.reserve(std::size_t{rounds} + 1);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    program.round_begin.push_back(static_cast<std::uint32_t>(sink.size()));
    algorithm.emit(program.spec, program.rank, round, sink);
  }
  program.round_begin.push_back(static_cast<std::uint32_t>(sink.size()));
  program.instructions = std::move(sink).instructions();
  for (auto const& instruction : program.instructions) check_exists(program, instruction);
}

Status check_order(Algorithm const& algorithm, Spec const& spec) {
  if (spec.by_position.empty() || algorithm.in_worker_order == nullptr || !algorithm.in_worker_order(spec)) return ok();
  return Error(PlanErrc::bad_parameter,
               spec.algorithm + " takes contributions in the order of ranks; expected an empty by_position");
}

}  // namespace

Result<Program> build(Algorithm const& algorithm, Spec const& spec, Rank rank) {
  if (auto const status = check(spec); status.has_error()) return status.error();
  if (spec.algorithm != algorithm.name)
    return Error(PlanErrc::unknown_algorithm,
                 "the spec asks for " + spec.algorithm + ", not for " + std::string(algorithm.name));
  auto const seen = by_positions(spec);
  if (auto const status = algorithm.check(seen); status.has_error()) return status.error();
  if (auto const status = check_order(algorithm, spec); status.has_error()) return status.error();
  if (rank >= spec.ranks)
    return Error(PlanErrc::rank_out_of_range,
                 "rank is " + std::to_string(rank) + "; expected 0.." + std::to_string(spec.ranks - 1));

  Program program;
  program.spec = seen;
  program.rank = position_of(spec, rank);
  program.chunks = algorithm.chunks(seen);
  program.scratch_chunks = algorithm.scratch_chunks(seen, program.rank);
  if (algorithm.coded_from != nullptr) program.coded_from = algorithm.coded_from(seen);
  program.rooted = algorithm.rooted || is_rooted(spec.op);
  program.equal_chunks = algorithm.equal_chunks != nullptr && algorithm.equal_chunks(seen);
  program.adds_one_by_one = reduces(spec.op) && summation_of(algorithm, seen) == Summation::one_by_one;
  CHORUS_ASSERT(!has_blocks(spec.op) || program.chunks % spec.ranks == 0, "as many chunks for every rank");
  auto const held = memory(seen, program.rank, program.chunks);
  program.input = held.input;
  program.output = held.output;
  generate(algorithm, program);
  unify_in_place(program);
  order_rounds(program);
  number_messages(program);
  derive_dependencies(program);
  widen_partials(program);
  mark_partials(algorithm, program);
  digest_channels(program, algorithm.same_chunks_on_both_ends && spec.op != Op::all_to_all);
  name_ranks(program, spec);
  program.instructions.shrink_to_fit();
  program.dependencies.shrink_to_fit();
  program.channels.shrink_to_fit();
  return program;
}

}  // namespace chorus::plan
