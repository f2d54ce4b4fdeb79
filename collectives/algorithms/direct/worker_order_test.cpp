// Tests with expressions instead of numbers that algorithms reduce in worker order if they declare it, and that all
// ranks compute the same expression.
#include <doctest/doctest.h>

#include <map>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/measured_for_tests.hpp"
#include "collectives/algorithms/representative.hpp"

using namespace chorus;
using plan::Buffer, plan::Instruction, plan::Opcode, plan::Program, plan::Rank, plan::Spec;

namespace {

// Runs rounds one after the other: in each round first all sends, then all other instructions.
class Expressions {
 public:
  explicit Expressions(std::vector<Program> const& programs) : programs_(programs) {
    auto rounds = std::size_t{0};
    for (auto const& program : programs) {
      rounds = std::max(rounds, program.round_begin.size() - 1);
      auto const held = plan::holding(program.spec, program.rank, program.chunks);
      for (auto c = held.input.first; c < held.input.first + held.input.count; ++c)
        at(program.rank, Buffer::input, c) = std::to_string(program.rank);
    }
    for (std::size_t round = 0; round < rounds; ++round)
      for (bool const sends : {true, false})
        for (auto const& program : programs)
          if (round + 1 < program.round_begin.size())
            for (auto i = program.round_begin[round]; i < program.round_begin[round + 1]; ++i)
              if ((program.instructions[i].op == Opcode::send) == sends) run(program.rank, program.instructions[i]);
  }

  // Returns all different expressions in the ranks' results.
  [[nodiscard]] std::set<std::string> results() {
    std::set<std::string> different;
    for (auto const& program : programs_) {
      auto const held = plan::holding(program.spec, program.rank, program.chunks).output;
      for (auto c = held.first; c < held.first + held.count; ++c) different.insert(at(program.rank, Buffer::output, c));
    }
    return different;
  }

 private:
  void run(Rank rank, Instruction const& i) {
    for (std::uint32_t k = 0; k < i.chunks; ++k) {
      auto& source = at(rank, i.src, i.src_chunk + k * i.stride);
      auto& destination = at(rank, i.dst, i.dst_chunk + k * i.stride);
      switch (i.op) {
        case Opcode::send:
          messages_[{rank, i.peer, i.message, k}] = source;
          break;
        case Opcode::recv:
          destination = messages_.at({i.peer, rank, i.message, k});
          break;
        case Opcode::recv_reduce:
          destination = combined(source, messages_.at({i.peer, rank, i.message, k}));
          break;
        case Opcode::copy:
          destination = source;
          break;
        case Opcode::reduce:
          destination = combined(destination, source);
          break;
      }
    }
  }

  static std::string combined(std::string const& a, std::string const& b) { return "(" + a + " " + b + ")"; }

  std::string& at(Rank rank, Buffer buffer, std::uint32_t chunk) {
    auto const& program = programs_[rank];
    bool const one_buffer = program.spec.in_place && !program.input.empty() && !program.output.empty();
    if (one_buffer && buffer == Buffer::input) buffer = Buffer::output;
    return cells_[{rank, buffer, chunk}];
  }

  std::vector<Program> const& programs_;
  std::map<std::tuple<Rank, Buffer, std::uint32_t>, std::string> cells_;
  std::map<std::tuple<Rank, Rank, std::uint32_t, std::uint32_t>, std::string> messages_;
};

std::string in_worker_order(std::uint32_t ranks) {
  auto text = std::string("0");
  for (Rank rank = 1; rank < ranks; ++rank) text = "(" + text + " " + std::to_string(rank) + ")";
  return text;
}

template <class Test>
void for_every_reduction(Op op, Test test) {
  for (auto const* algorithm : algorithms::all())
    for (std::uint32_t p = 2; p <= 17; ++p)
      for (auto const& spec : algorithms::representative_specs(*algorithm, op, p)) test(*algorithm, spec);
}

}  // namespace

TEST_CASE("algorithms that declare worker order reduce in worker order, with any root, in place and not") {
  auto specs = std::map<Op, int>{};
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for_every_reduction(op, [&](plan::Algorithm const& algorithm, Spec const& spec) {
      if (algorithm.in_worker_order == nullptr || !algorithm.in_worker_order(spec)) return;
      ++specs[op];
      auto const programs = algorithms::programs_of(algorithm, spec);
      if (Expressions(programs).results() != std::set{in_worker_order(spec.ranks)})
        FAIL_CHECK(to_string(spec) << " reduces " << *Expressions(programs).results().begin());
    });
  CHECK(specs[Op::all_reduce] > 0);
  CHECK(specs[Op::reduce] > 0);
  CHECK(specs[Op::reduce_scatter] > 0);
}

TEST_CASE("all ranks compute the same expression for the same chunk, so that they end with the same bits") {
  for_every_reduction(Op::all_reduce, [](plan::Algorithm const& algorithm, Spec const& spec) {
    auto const programs = algorithms::programs_of(algorithm, spec);
    if (Expressions(programs).results().size() > programs.front().chunks) FAIL_CHECK(to_string(spec));
  });
}
