// A partial sum becomes wide if all its readers are reductions of this rank whose operand has exactly its range. Chunks
// that are sent, copied or final are rounded to the dtype. What is received or copied is exact in the dtype, and stays
// as it is.
#include <limits>

#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {
namespace {

constexpr auto nobody = std::numeric_limits<std::uint32_t>::max();

class Widening {
 public:
  explicit Widening(Program& program)
      : program_(program),
        writer_(2 * std::size_t{program.chunks} + program.scratch_chunks, nobody),
        partials_(program.instructions.size()) {}

  void run() {
    for (std::uint32_t i = 0; i < program_.instructions.size(); ++i) {
      auto const& instruction = program_.instructions[i];
      bool const takes_src = instruction.op == Opcode::recv_reduce;
      if (instruction.reads_src()) note_read(i, instruction.src, instruction.src_chunk, takes_src);
      if (instruction.op == Opcode::reduce) note_read(i, instruction.dst, instruction.dst_chunk, true);
      if (instruction.writes_dst()) note_write(i);
    }
    for (auto& instruction : program_.instructions) {
      auto const& partial = partials_[static_cast<std::size_t>(&instruction - program_.instructions.data())];
      if (partial.is_wide()) instruction.flags |= wide_result_flag;
      if (partial.takes != nobody && partials_[partial.takes].is_wide()) instruction.flags |= wide_operand_flag;
    }
  }

 private:
  struct Partial {
    bool is_candidate = false;
    bool is_taken = false;         // as the operand of a reduction
    std::uint32_t takes = nobody;  // the instruction whose result is the operand of this one
    [[nodiscard]] bool is_wide() const { return is_candidate && is_taken; }
  };

  std::uint32_t& writer(Buffer buffer, std::uint32_t chunk) {
    return writer_[static_cast<std::size_t>(buffer) * program_.chunks + chunk];  // input, output, scratch
  }

  void note_read(std::uint32_t reader, Buffer buffer, std::uint32_t first, bool as_operand) {
    auto const& range = program_.instructions[reader];
    auto const only = writer(buffer, first);
    auto exact = as_operand && only != nobody && writes_exactly(only, buffer, first, range);
    for (std::uint32_t k = 1; k < range.chunks; ++k) exact &= writer(buffer, first + k * range.stride) == only;
    if (exact) {
      partials_[only].is_taken = true;
      partials_[reader].takes = only;
      return;
    }
    for (std::uint32_t k = 0; k < range.chunks; ++k)
      if (auto const w = writer(buffer, first + k * range.stride); w != nobody) partials_[w].is_candidate = false;
  }

  [[nodiscard]] bool writes_exactly(std::uint32_t writer, Buffer buffer, std::uint32_t first,
                                    Instruction const& range) const {
    auto const& i = program_.instructions[writer];
    return i.dst == buffer && i.dst_chunk == first && i.chunks == range.chunks && i.stride == range.stride;
  }

  void note_write(std::uint32_t index) {
    auto const& i = program_.instructions[index];
    partials_[index].is_candidate = i.adds() && !i.is_final();
    for (std::uint32_t k = 0; k < i.chunks; ++k) writer(i.dst, i.dst_chunk + k * i.stride) = index;
  }

  Program& program_;
  std::vector<std::uint32_t> writer_;  // per chunk of all buffers
  std::vector<Partial> partials_;      // per instruction
};

}  // namespace

void widen_partials(Program& program) {
  if (reduces(program.spec.op)) Widening(program).run();
}

}  // namespace chorus::plan
