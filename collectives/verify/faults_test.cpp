// Well-formed plans that compute a wrong result: one contribution is left out or added twice, and all passes have run
// again. Only the values of the chunks show the fault. The groups are so large that values are fingerprints.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "collectives/plan/passes/passes.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/verify/verify.hpp"

using namespace chorus;
using plan::Instruction, plan::Opcode, plan::Program, plan::Rank, plan::Spec;

namespace {

enum class Fault : std::uint8_t { drops, doubles };

bool can_be_faulty(Instruction const& i) { return i.op == Opcode::recv_reduce && !i.is_final(); }

// The rank loses its part of the sum: the received message replaces it.
void drop(Instruction& instruction) {
  auto const plain = Instruction{};
  instruction.op = Opcode::recv;
  instruction.src = plain.src;
  instruction.src_chunk = plain.src_chunk;
}

// Adds the operand of instruction `at` once more.
void repeat(Program& program, std::uint32_t at) {
  auto again = program.instructions[at];
  again.op = Opcode::reduce;
  again.peer = again.message = again.lane = 0;
  program.instructions.insert(program.instructions.begin() + at + 1, again);
  for (auto& begin : program.round_begin)
    if (begin > at) ++begin;
}

void derive_anew(plan::Algorithm const& algorithm, Program& program) {
  for (auto& instruction : program.instructions) instruction.flags &= plan::final_flag;
  derive_dependencies(program);
  widen_partials(program);
  mark_partials(algorithm, program);
}

class Faults {
 public:
  explicit Faults(plan::Algorithm const& algorithm) : algorithm_(algorithm) {}

  // Returns a faulty random plan on 65 to 67 ranks, or nothing if the algorithm or the chosen rank has no partial sums.
  std::optional<std::vector<Program>> make(Fault fault) {
    auto const op = std::array{Op::all_reduce, Op::reduce, Op::reduce_scatter}[below(3)];
    auto const specs = algorithms::representative_specs(algorithm_, op, verify::max_exact_ranks + 1 + below(3));
    if (specs.empty()) return {};
    auto const& spec = specs[below(specs.size())];
    auto const victim = below(spec.ranks);
    auto program = plan::build(algorithm_, spec, victim).value();
    std::vector<std::uint32_t> places;
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i)
      if (can_be_faulty(program.instructions[i])) places.push_back(i);
    if (places.empty()) return {};
    auto const place = places[below(places.size())];
    fault == Fault::drops ? drop(program.instructions[place]) : repeat(program, place);
    derive_anew(algorithm_, program);
    std::vector<Program> programs;
    for (Rank rank = 0; rank < spec.ranks; ++rank)
      programs.push_back(rank == victim ? program : plan::build(algorithm_, spec, rank).value());
    for (auto& each : programs) each.adds_one_by_one = false;  // of which another check would complain first
    return programs;
  }

 private:
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  plan::Algorithm const& algorithm_;
  std::minstd_rand random_{20'261'122};
};

bool has_partial_sums(plan::Algorithm const& algorithm) {
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for (auto const& spec : algorithms::representative_specs(algorithm, op, verify::max_exact_ranks + 1))
      for (Rank rank = 0; rank < spec.ranks; ++rank)
        for (auto const& instruction : plan::build(algorithm, spec, rank).value().instructions)
          if (can_be_faulty(instruction)) return true;
  return false;
}

void finds_every(Fault fault, int times) {
  std::size_t algorithms = 0;
  for (auto const* algorithm : algorithms::all()) {
    if (!has_partial_sums(*algorithm)) continue;
    ++algorithms;
    Faults faults(*algorithm);
    for (int done = 0; done < times;) {
      auto const programs = faults.make(fault);
      if (!programs) continue;
      ++done;
      auto const report = verify::check(*programs);
      if (report.failure.find("fingerprint") == std::string::npos)
        FAIL_CHECK(to_string(programs->front().spec)
                   << ": " << (report.ok ? "taken for right" : "refused for another reason: " + report.failure));
    }
  }
  CHECK(algorithms >= 19);
}

}  // namespace

TEST_CASE("above 64 ranks a dropped contribution changes the fingerprint") { finds_every(Fault::drops, 200); }
TEST_CASE("above 64 ranks a doubled contribution changes the fingerprint") { finds_every(Fault::doubles, 200); }
