#include "collectives/core/assert.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/plan/passes.hpp"

namespace chorus::plan {
namespace {

// Takes down what an author emits, and stops an author who names what does not exist.
class Collector final : public Sink {
 public:
  explicit Collector(Program& program) : program_(program) {}

  void put(Instruction const& instruction) override {
    if (instruction.reads_src()) check(instruction, instruction.src, instruction.src_chunk);
    if (instruction.writes_dst()) check(instruction, instruction.dst, instruction.dst_chunk);
    if (instruction.op == Opcode::send || instruction.receives())
      CHORUS_ASSERT(instruction.peer < program_.spec.ranks && instruction.peer != program_.rank,
                    "the peer is another rank");
    program_.instructions.push_back(instruction);
  }

 private:
  void check(Instruction const& instruction, Buffer buffer, std::uint32_t chunk) const {
    CHORUS_ASSERT(instruction.chunks >= 1 && instruction.stride >= 1, "an instruction moves distinct chunks");
    CHORUS_ASSERT(in_bounds(program_, buffer, chunk, instruction), "chunks lie within their buffer");
  }

  Program& program_;
};

void generate(Algorithm const& algorithm, Program& program) {
  auto const rounds = algorithm.rounds(program.spec, program.rank);
  Collector collector(program);
  program.round_begin.reserve(std::size_t{rounds} + 1);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    program.round_begin.push_back(static_cast<std::uint32_t>(program.instructions.size()));
    algorithm.emit(program.spec, program.rank, round, collector);
  }
  program.round_begin.push_back(static_cast<std::uint32_t>(program.instructions.size()));
}

}  // namespace

Result<Program> build(Algorithm const& algorithm, Spec const& spec, Rank rank) {
  if (auto const status = check(spec); status.has_error()) return status.error();
  if (spec.algorithm != algorithm.name)
    return Error(PlanErrc::unknown_algorithm,
                 "the spec asks for " + spec.algorithm + ", not for " + std::string(algorithm.name));
  if (auto const status = algorithm.check(spec); status.has_error()) return status.error();
  if (rank >= spec.ranks)
    return Error(PlanErrc::rank_out_of_range,
                 "rank is " + std::to_string(rank) + "; expected 0.." + std::to_string(spec.ranks - 1));

  Program program;
  program.spec = spec;
  program.rank = rank;
  program.chunks = algorithm.chunks(spec);
  program.scratch_chunks = algorithm.scratch_chunks(spec, rank);
  program.rooted = algorithm.rooted || is_rooted(spec.op);
  program.equal_chunks = algorithm.equal_chunks != nullptr && algorithm.equal_chunks(spec);
  CHORUS_ASSERT(!has_blocks(spec.op) || program.chunks % spec.ranks == 0, "as many chunks for every rank");
  auto const held = memory(spec, rank, program.chunks);
  program.input = held.input;
  program.output = held.output;
  generate(algorithm, program);
  unify_in_place(program);
  order_rounds(program);
  number_messages(program);
  derive_dependencies(program);
  widen_partials(program);
  digest_channels(program, algorithm.same_chunks_on_both_ends && spec.op != Op::all_to_all);
  program.instructions.shrink_to_fit();
  program.dependencies.shrink_to_fit();
  program.channels.shrink_to_fit();
  return program;
}

}  // namespace chorus::plan
