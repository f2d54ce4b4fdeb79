// Tests of the verifier by mutation: it must refuse every right plan with one change.
#include <doctest/doctest.h>

#include <random>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/verify/halving_doubling_for_tests.hpp"
#include "collectives/verify/verify.hpp"

using namespace chorus;
using plan::Buffer, plan::Dependency, plan::Instruction, plan::Opcode, plan::Program, plan::Rank, plan::Spec;

namespace {

class Mutator {
 public:
  // Makes plans on least_ranks to most_ranks ranks.
  Mutator(std::uint32_t seed, std::uint32_t least_ranks, std::uint32_t most_ranks)
      : random_(seed), least_ranks_(least_ranks), most_ranks_(most_ranks) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  // Returns the plan of a random operation, size and spec of the algorithm.
  std::vector<Program> random_plan(plan::Algorithm const& algorithm) {
    for (;;) {
      auto const ranks = least_ranks_ + below(most_ranks_ - least_ranks_ + 1);
      auto const specs = algorithms::representative_specs(algorithm, all_ops[below(all_ops.size())], ranks);
      if (specs.empty()) continue;
      auto const& spec = specs[below(static_cast<std::uint32_t>(specs.size()))];
      std::vector<Program> programs;
      for (Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(plan::build(algorithm, spec, rank).value());
      return programs;
    }
  }

  // Changes the program. Returns the change in words, or an empty text if the plan would still be right.
  std::string change(Program& program) {
    return below(3) > 0 || program.dependencies.empty() ? change_instruction(program) : change_dependency(program);
  }

 private:
  std::string change_instruction(Program& program) {
    if (program.instructions.empty()) return {};
    auto const index = below(static_cast<std::uint32_t>(program.instructions.size()));
    auto& instruction = program.instructions[index];
    auto const before = instruction;
    change_field(program, instruction);
    if (instruction == before) return {};
    return "rank " + std::to_string(program.rank) + " instruction " + std::to_string(index) + ": " + to_string(before) +
           " became " + to_string(instruction);
  }

  void change_field(Program const& program, Instruction& instruction) {
    switch (below(11)) {
      case 0:
        instruction.op = static_cast<Opcode>(below(5));
        break;
      case 1:
        instruction.src = static_cast<Buffer>(below(3));
        break;
      case 2:
        instruction.dst = static_cast<Buffer>(below(3));
        break;
      case 3:
        instruction.flags ^= static_cast<std::uint8_t>(1u << below(5));
        break;
      case 4:
        instruction.lane = static_cast<std::uint16_t>(below(3));
        break;
      case 5:
        instruction.peer = below(program.spec.ranks);
        break;
      case 6:
        instruction.message = below(4);
        break;
      case 7:
        instruction.src_chunk = below(program.chunks + 1);
        break;
      case 8:
        instruction.dst_chunk = below(program.chunks + 1);
        break;
      case 9:
        instruction.chunks = below(4);
        break;
      case 10:
        instruction.stride = below(4);
        break;
    }
  }

  // Removes a dependency, moves it to an instruction that does not imply it, or weakens it.
  std::string change_dependency(Program& program) {
    auto const at = below(static_cast<std::uint32_t>(program.dependencies.size()));
    auto owner = std::uint32_t{0};
    while (program.dependency_begin[owner + 1] <= at) ++owner;
    auto& dependency = program.dependencies[at];
    auto const text = "rank " + std::to_string(program.rank) + " instruction " + std::to_string(owner) +
                      " no longer waits as it should for " + std::to_string(dependency.instruction);
    switch (below(3)) {
      case 0: {
        auto const removed = dependency;
        program.dependencies.erase(program.dependencies.begin() + at);
        for (auto i = owner + 1; i < program.dependency_begin.size(); ++i) --program.dependency_begin[i];
        if (reaches(program, owner, removed.instruction, !removed.segmentwise)) return {};  // implied by a longer path
        return text;
      }
      case 1: {
        auto const other = below(owner);
        auto const removed = dependency;
        dependency = {other, false};
        if (reaches(program, owner, removed.instruction, !removed.segmentwise)) return {};
        return text;
      }
      default:
        if (dependency.segmentwise) return {};  // a wait for the whole instead would be right, only slower
        dependency.segmentwise = true;
        return text;
    }
  }

  // Returns true if a path of dependencies leads from `from` to `to`. `wholly`: a path with a wait for the whole.
  static bool reaches(Program const& program, std::uint32_t from, std::uint32_t to, bool wholly) {
    for (auto const& [earlier, segmentwise] : program.dependencies_of(from)) {
      bool const still_wholly = wholly && segmentwise;
      if (earlier == to ? !still_wholly : earlier > to && reaches(program, earlier, to, still_wholly)) return true;
    }
    return false;
  }

  std::minstd_rand random_;
  std::uint32_t least_ranks_, most_ranks_;
};

void refuses_every_change(plan::Algorithm const& algorithm, int changes, Mutator mutator = {20'240'229, 2, 10}) {
  for (int done = 0; done < changes;) {
    auto programs = mutator.random_plan(algorithm);
    REQUIRE(verify::check(programs).failure == "");
    auto const what = mutator.change(programs[mutator.below(programs.front().spec.ranks)]);
    if (what.empty()) continue;
    ++done;
    if (verify::check(programs).ok) FAIL_CHECK(to_string(programs.front().spec) << ": not refused: " << what);
  }
}

}  // namespace

TEST_CASE("the verifier refuses a thousand changed plans of every algorithm") {
  for (auto const* algorithm : algorithms::all()) refuses_every_change(*algorithm, 1000);
}
TEST_CASE("the verifier refuses changed plans above 64 ranks, where it compares fingerprints") {
  constexpr auto most_exact = verify::max_exact_ranks;
  for (auto const* algorithm : algorithms::all())
    refuses_every_change(*algorithm, 200, {20'240'229, most_exact + 1, most_exact + 3});
}
TEST_CASE("the verifier refuses changed plans with overlapping ranges") {
  refuses_every_change(verify::halving_doubling, 1000);
  refuses_every_change(verify::strided_halving, 1000);
}
