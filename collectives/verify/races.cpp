// The check makes two sets of earlier instructions for every instruction: those to which a path of dependencies leads,
// and among these those that must have finished wholly, because one step of such a path waits for the whole
// instruction. Then it compares, chunk by chunk, every pair of accesses of which one writes. If both name the identical
// range, element k of one access conflicts with element k of the other only, and any path orders them segment by
// segment. Otherwise the earlier instruction must have finished wholly.
//
// A segmentwise dependency is an error unless both instructions conflict in an identical range: only then do their
// segments correspond.
#include <algorithm>
#include <vector>

#include "collectives/plan/text/text.hpp"
#include "collectives/verify/parts.hpp"

namespace chorus::verify {
namespace {

using plan::Buffer, plan::Instruction, plan::Program;

struct Access {
  std::uint32_t instruction;
  std::uint32_t first_chunk;  // first chunk of its range
  Buffer buffer;
  bool writes;
};

// The accesses of an instruction to src and dst. `reduce` also reads its dst, but an access in conflict with that read
// is in conflict with the write, too.
struct Accesses {
  explicit Accesses(Instruction const& i, std::uint32_t index) {
    if (i.reads_src()) list[count++] = {index, i.src_chunk, i.src, false};
    if (i.writes_dst()) list[count++] = {index, i.dst_chunk, i.dst, true};
  }
  [[nodiscard]] Access const* begin() const { return list; }
  [[nodiscard]] Access const* end() const { return list + count; }

  Access list[2];
  std::size_t count = 0;
};

class Races {
 public:
  std::string check(Program const& program) {
    program_ = &program;
    if (auto wrong = follow_paths(); !wrong.empty()) return wrong;
    collect_accesses();
    for (auto chunk = std::size_t{0}; chunk + 1 < access_begin_.size(); ++chunk)
      for (auto later = access_begin_[chunk]; later < access_begin_[chunk + 1]; ++later)
        for (auto earlier = access_begin_[chunk]; earlier < later; ++earlier)
          if (auto wrong = compare(accesses_[earlier], accesses_[later]); !wrong.empty()) return wrong;
    return {};
  }

 private:
  using Word = std::uint64_t;

  // Fills paths_ and whole_: one row of bits per instruction.
  std::string follow_paths() {
    auto const count = program_->instructions.size();
    words_ = (count + 63) / 64;
    paths_.assign(count * words_, 0);
    whole_.assign(count * words_, 0);
    for (std::uint32_t i = 0; i < count; ++i)
      for (auto const& [from, segmentwise] : program_->dependencies_of(i)) {
        if (segmentwise && !same_segments(from, i))
          return where(*program_, i) + ": waits segment by segment for instruction " + std::to_string(from) +
                 ", but their segments do not correspond";
        auto const used = from / 64 + 1;  // paths from `from` lead to earlier instructions only
        for (std::size_t w = 0; w < used; ++w) {
          paths_[i * words_ + w] |= paths_[from * words_ + w];
          whole_[i * words_ + w] |= (segmentwise ? whole_ : paths_)[from * words_ + w];
        }
        set(paths_, i, from);
        if (!segmentwise) set(whole_, i, from);
      }
    return {};
  }

  [[nodiscard]] bool same_segments(std::uint32_t a, std::uint32_t b) const {
    auto const &first = program_->instructions[a], &second = program_->instructions[b];
    if (first.chunks != second.chunks || first.stride != second.stride) return false;
    for (auto const& x : Accesses(first, a))
      for (auto const& y : Accesses(second, b))
        if (x.buffer == y.buffer && x.first_chunk == y.first_chunk && (x.writes || y.writes)) return true;
    return false;
  }

  // Fills accesses_, sorted by chunk of all buffers, and within a chunk by instruction.
  void collect_accesses() {
    auto const for_each = [this](auto&& use) {
      for (std::uint32_t i = 0; i < program_->instructions.size(); ++i) {
        auto const& instruction = program_->instructions[i];
        for (auto const& access : Accesses(instruction, i))
          for (std::uint32_t k = 0; k < instruction.chunks; ++k)
            use(static_cast<std::size_t>(access.buffer) * program_->chunks + access.first_chunk +
                    std::size_t{k} * instruction.stride,
                access);
      }
    };
    auto const chunks = 2 * std::size_t{program_->chunks} + program_->scratch_chunks;
    access_begin_.assign(chunks + 1, 0);
    for_each([this](std::size_t chunk, Access const&) { ++access_begin_[chunk + 1]; });
    for (std::size_t c = 0; c < chunks; ++c) access_begin_[c + 1] += access_begin_[c];
    accesses_.resize(access_begin_.back());
    next_.assign(access_begin_.begin(), access_begin_.end() - 1);
    for_each([this](std::size_t chunk, Access const& access) { accesses_[next_[chunk]++] = access; });
  }

  [[nodiscard]] std::string compare(Access const& earlier, Access const& later) const {
    if (!earlier.writes && !later.writes) return {};
    auto const &a = program_->instructions[earlier.instruction], &b = program_->instructions[later.instruction];
    bool const identical = earlier.first_chunk == later.first_chunk && a.chunks == b.chunks && a.stride == b.stride;
    if (earlier.instruction == later.instruction)
      return identical ? std::string{} : where(*program_, later.instruction) + ": reads and writes overlapping ranges";
    if (get(identical ? paths_ : whole_, later.instruction, earlier.instruction)) return {};
    return where(*program_, later.instruction) + ": nothing makes it wait for instruction " +
           std::to_string(earlier.instruction) + " (" + plan::to_string(a) + ")";
  }

  void set(std::vector<Word>& rows, std::size_t row, std::uint32_t bit) {
    rows[row * words_ + bit / 64] |= Word{1} << (bit % 64);
  }
  [[nodiscard]] bool get(std::vector<Word> const& rows, std::size_t row, std::uint32_t bit) const {
    return (rows[row * words_ + bit / 64] >> (bit % 64) & 1) != 0;
  }

  Program const* program_ = nullptr;
  std::size_t words_ = 0;
  std::vector<Word> paths_, whole_;
  std::vector<Access> accesses_;
  std::vector<std::size_t> access_begin_, next_;  // per chunk
};

}  // namespace

std::string check_races(std::span<Program const> programs) {
  Races races;
  for (auto const& program : programs)
    if (auto wrong = races.check(program); !wrong.empty()) return wrong;
  return {};
}

}  // namespace chorus::verify
