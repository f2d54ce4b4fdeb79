// The pass walks the program once. For every chunk of every buffer it knows the last writer and the readers since then:
// a reader waits for the writer, a writer for the readers and for the writer before it. These waits imply all others.
//
// Two instructions may overlap segment by segment if all their conflicts that the pass finds are between identical
// ranges. If a third instruction wrote the chunk in between, the pass does not find the conflict, but the waits of the
// third instruction order it. If the ranges of the third differ from those of either side, that wait is for the whole
// instruction, which is stronger.
#include <algorithm>
#include <limits>

#include "collectives/plan/passes/passes.hpp"

namespace chorus::plan {
namespace {

constexpr auto nobody = std::numeric_limits<std::uint32_t>::max();

class Dependencies {
 public:
  explicit Dependencies(Program& program)
      : program_(program),
        chunks_(2 * std::size_t{program.chunks} + program.scratch_chunks),
        seen_(program.instructions.size()) {}

  void derive() {
    auto const count = static_cast<std::uint32_t>(program_.instructions.size());
    program_.dependencies.clear();
    program_.dependency_begin.assign(1, 0);
    program_.dependency_begin.reserve(count + 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      found_.clear();
      auto const& instruction = program_.instructions[i];
      if (instruction.reads_src()) wait_for_writers(i, source(instruction));
      if (instruction.op == Opcode::reduce) wait_for_writers(i, destination(instruction));
      if (instruction.writes_dst()) wait_for_all(i, destination(instruction));
      if (instruction.reads_src()) note_read(i, source(instruction));
      if (instruction.writes_dst()) note_write(i, destination(instruction));
      append_found();
    }
  }

 private:
  struct Range {
    Buffer buffer;
    std::uint32_t chunk, count, stride;
    bool operator==(Range const&) const = default;
  };
  struct Reader {
    std::uint32_t instruction;
    std::uint32_t next;  // index in readers_; `nobody` at the end
  };
  struct Found {
    std::uint32_t instruction;
    bool segmentwise = true;
    bool implied = false;
  };
  struct Seen {
    std::uint32_t by = nobody;   // the last instruction that found this one
    std::uint32_t position = 0;  // its index in found_ then
  };
  struct Chunk {
    std::uint32_t writer = nobody;
    std::uint32_t readers = nobody;  // since the last write; head of a list in readers_
  };

  static Range source(Instruction const& i) { return {i.src, i.src_chunk, i.chunks, i.stride}; }
  static Range destination(Instruction const& i) { return {i.dst, i.dst_chunk, i.chunks, i.stride}; }

  Chunk& chunk(Range const& range, std::uint32_t k) {
    auto const base = static_cast<std::size_t>(range.buffer) * program_.chunks;  // input, output, scratch
    return chunks_[base + range.chunk + std::size_t{k} * range.stride];
  }

  void wait_for_writers(std::uint32_t who, Range const& range) {
    for (std::uint32_t k = 0; k < range.count; ++k) {
      auto const writer = chunk(range, k).writer;
      if (writer != nobody) found(who, writer, destination(program_.instructions[writer]) == range);
    }
  }

  void wait_for_all(std::uint32_t who, Range const& range) {
    wait_for_writers(who, range);
    for (std::uint32_t k = 0; k < range.count; ++k)
      for (auto r = chunk(range, k).readers; r != nobody; r = readers_[r].next)
        found(who, readers_[r].instruction, source(program_.instructions[readers_[r].instruction]) == range);
  }

  // A `reduce` also reads its destination. That read needs no note: an access in conflict with it is in conflict with
  // the write, too.
  void note_read(std::uint32_t who, Range const& range) {
    for (std::uint32_t k = 0; k < range.count; ++k) {
      auto& head = chunk(range, k).readers;
      readers_.push_back({who, head});
      head = static_cast<std::uint32_t>(readers_.size() - 1);
    }
  }

  void note_write(std::uint32_t who, Range const& range) {
    for (std::uint32_t k = 0; k < range.count; ++k) chunk(range, k) = {who, nobody};
  }

  void found(std::uint32_t who, std::uint32_t earlier, bool same_range) {
    auto& seen = seen_[earlier];
    if (seen.by != who) {
      seen = {who, static_cast<std::uint32_t>(found_.size())};
      found_.push_back({earlier, same_range});
    } else if (!same_range) {
      found_[seen.position].segmentwise = false;
    }
  }

  // Leaves out waits that other waits imply. A path of waits is for the whole instruction if one of its steps is.
  void append_found() {
    auto const earlier = [](Found const& a, Found const& b) { return a.instruction < b.instruction; };
    std::sort(found_.begin(), found_.end(), earlier);
    if (found_.size() > 1)
      for (auto const& via : found_)
        for (auto const& further : program_.dependencies_of(via.instruction)) {
          auto const at = std::lower_bound(found_.begin(), found_.end(), Found{further.instruction}, earlier);
          if (at != found_.end() && at->instruction == further.instruction)
            at->implied |= at->segmentwise || !via.segmentwise || !further.segmentwise;
        }
    for (auto const& found : found_)
      if (!found.implied) program_.dependencies.push_back({found.instruction, found.segmentwise});
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
  }

  Program& program_;
  std::vector<Chunk> chunks_;
  std::vector<Reader> readers_;
  std::vector<Seen> seen_;    // per instruction
  std::vector<Found> found_;  // by the present instruction
};

}  // namespace

void derive_dependencies(Program& program) { Dependencies(program).derive(); }

}  // namespace chorus::plan
