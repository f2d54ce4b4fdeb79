#include "collectives/verify/verify.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/verify/halving_doubling_for_tests.hpp"
#include "collectives/verify/problem_for_tests.hpp"

using namespace chorus;
using plan::build, plan::Program, plan::Rank, plan::Spec;

namespace {

std::vector<Program> programs_of(plan::Algorithm const& algorithm, Spec spec) {
  spec.algorithm = algorithm.name;
  std::vector<Program> programs;
  for (Rank rank = 0; rank < spec.ranks; ++rank) programs.push_back(build(algorithm, spec, rank).value());
  return programs;
}

// Returns the verifier's failure for the programs of two ranks, given by their text without the common lines.
std::string failure(std::string const& rank_0, std::string const& rank_1, int chunks = 1) {
  std::vector<Program> programs;
  auto rank = 0;
  for (auto const* text : {&rank_0, &rank_1}) {
    auto program =
        plan::parse_text("plan all_reduce by_hand ranks=2 root=0 arity=2 out_of_place\nrank " + std::to_string(rank++) +
                         " chunks " + std::to_string(chunks) + " scratch 1\n" + *text)
            .value();
    plan::Channel channel{.peer = 1 - program.rank};
    for (auto const& instruction : program.instructions) {
      channel.sends += instruction.op == plan::Opcode::send;
      channel.receives += instruction.receives();
    }
    if (channel.sends + channel.receives > 0) program.channels.push_back(channel);
    programs.push_back(program);
  }
  auto const report = verify::check(programs);
  CHECK(report.ok == report.failure.empty());
  return report.failure;
}

auto const root = R"(round 0
  0 recv_reduce input[0] into output[0] from 1 message 0 final
  1 send output[0] to 1 message 0 after 0~
)";
auto const leaf = R"(round 0
  0 send input[0] to 0 message 0
  1 recv into output[0] from 0 message 0
)";

}  // namespace

TEST_CASE("a right plan is accepted") { CHECK(failure(root, leaf) == ""); }

TEST_CASE("a plan with a missing contribution is refused") {
  CHECK(failure("round 0\n  0 copy input[0] into output[0]\n", leaf) ==
        "rank 1: 1 messages to rank 0 and 1 from it, which counts 0 and 0");
  CHECK(failure("round 0\n  0 recv into output[0] from 1 message 0\n  1 send input[0] to 1 message 0\n", leaf) ==
        "rank 0: output[0] ends as chunk 0 of rank 1");
}

TEST_CASE("a plan that counts a contribution twice is refused") {
  auto const twice = R"(round 0
  0 recv_reduce input[0] into output[0] from 1 message 0
  1 reduce input[0] into output[0] partial_operand after 0~
  2 send output[0] to 1 message 0 after 1~
)";
  CHECK(failure(twice, leaf) == "rank 0: output[0] ends as chunk 0 of rank 0 x2, chunk 0 of rank 1");
}

TEST_CASE("ranks that receive before they send deadlock, though every message has both ends") {
  auto const waits_first = [](Rank peer) {
    auto const other = std::to_string(peer);
    return "round 0\n  0 recv_reduce input[0] into output[0] from " + other + " message 0\n  1 send input[0] to " +
           other + " message 0 after 0\n";
  };
  CHECK(
      failure(waits_first(1), waits_first(0)) ==
      "deadlock: rank 0, instruction 0 (recv_reduce input[0] into output[0] from 1 message 0) waits for ever, as do 3 "
      "others");
}

TEST_CASE("a message cannot overtake the previous message of its channel") {
  auto const sender = R"(round 0
  0 recv_reduce input[0] into output[0] from 1 message 0 final
  1 send output[0] to 1 message 0 after 0~
  2 send input[0] to 1 message 1
)";
  auto const receiver = R"(round 0
  0 recv into output[0] from 0 message 0
  1 recv into scratch[0] from 0 message 1
  2 send input[0] to 0 message 0 after 1
)";
  CHECK(failure(sender, receiver).starts_with("deadlock: rank 0, instruction 0"));
}

TEST_CASE("a partial sum that is kept part by part must not be awaited as a whole by its consumer") {
  auto const sums = [](std::string const& after) {
    return "round 0\n  0 copy input[0] into output[0] wide_result\n  1 send input[0] to 1 message 0" + after + R"(
round 1
  2 recv_reduce output[0] into output[0] from 1 message 0 wide_operand final after 0~
  3 send output[0] to 1 message 1 after 2~
)";
  };
  auto const answers = R"(round 0
  0 recv into scratch[0] from 0 message 0
  1 send input[0] to 0 message 0 after 0
  2 recv into output[0] from 0 message 1
)";
  CHECK(failure(sums(""), answers) == "");
  CHECK(failure(sums(" after 0"), answers) ==
        "rank 0, instruction 1 (send input[0] to 1 message 0): waits for the whole of instruction 0, which waits for "
        "it where partial sums are kept part by part");
}

TEST_CASE("a plan that says wrongly that it adds one by one is refused") {
  auto programs = programs_of(algorithms::binomial, {.op = Op::all_reduce, .ranks = 6});
  CHECK(verify::check(programs).ok);
  for (auto& program : programs) program.adds_one_by_one = true;
  CHECK(verify::check(programs).failure.find("adds two partial sums, in a plan that adds one by one") !=
        std::string::npos);
  programs.front().adds_one_by_one = false;
  CHECK(verify::check(programs).failure == "rank 1: adds one by one for some ranks only");
}

TEST_CASE("a wide partial sum that no instruction takes is refused") {
  auto const leaves = R"(round 0
  0 copy input[0] into scratch[0] wide_result
  1 recv_reduce input[0] into output[0] from 1 message 0 final
  2 send output[0] to 1 message 0 after 1~
)";
  CHECK(failure(leaves, leaf) ==
        "rank 0, instruction 0 (copy input[0] into scratch[0] wide_result): leaves a wide partial sum that nobody "
        "takes");
}

TEST_CASE("a wide partial sum that two instructions take is refused") {
  auto const takes_twice = R"(round 0
  0 copy input[0] into scratch[0] wide_result
  1 recv_reduce scratch[0] into output[0] from 1 message 0 wide_operand final after 0~
  2 recv_reduce scratch[0] into output[0] from 1 message 1 wide_operand final after 1~
  3 send output[0] to 1 message 0 after 2~
)";
  auto const sends_twice = R"(round 0
  0 send input[0] to 0 message 0
  1 send input[0] to 0 message 1
  2 recv into output[0] from 0 message 0
)";
  CHECK(failure(takes_twice, sends_twice) ==
        "rank 0, instruction 2 (recv_reduce scratch[0] into output[0] from 1 message 1 wide_operand final): takes a "
        "wide partial sum that another one has taken");
}

TEST_CASE("a sum marked as one contribution and a contribution marked as a sum are refused") {
  auto const as_sum = R"(round 0
  0 recv_reduce input[0] into output[0] from 1 message 0 partial_other final
  1 send output[0] to 1 message 0 after 0~
)";
  CHECK(failure(as_sum, leaf) ==
        "rank 0, instruction 0 (recv_reduce input[0] into output[0] from 1 message 0 partial_other final): takes what "
        "it adds for a sum, which is chunk 0 of rank 1");
  auto programs = programs_of(algorithms::ring, {.ranks = 3});
  for (auto& program : programs) program.adds_one_by_one = false;  // of which another check would complain first
  programs[0].instructions[3].flags &= static_cast<std::uint8_t>(~plan::partial_other_flag);
  CHECK(verify::check(programs).failure ==
        "rank 0, instruction 3 (recv_reduce input[1] into output[1] from 2 message 1 final): takes what it adds for "
        "one contribution, which is chunk 1 of ranks 1..2");
}

TEST_CASE("two unordered writers of a chunk are a race") {
  auto const race = R"(round 0
  0 recv_reduce input[0] into output[0] from 1 message 0 final
  1 send output[0] to 1 message 0
)";
  CHECK(failure(race, leaf)
            .starts_with(
                "rank 0, instruction 1 (send output[0] to 1 message 0): nothing makes it wait for instruction 0"));
}

TEST_CASE("a segmentwise wait between different ranges is refused") {
  auto const overlapping = R"(round 0
  0 copy input[0:2] into output[0:2]
  1 copy output[1] into scratch[0] after 0~
)";
  CHECK(failure(overlapping, overlapping, 2).find("their segments do not correspond") != std::string::npos);
}

TEST_CASE("a segmentwise wait does not order a conflict between different ranges") {
  // Instruction 1 reads the range that 0 wrote, but also overwrites the source of 0, one chunk further.
  auto const out_of_step = R"(round 0
  0 copy output[0:2] into output[2:2]
  1 copy output[2:2] into output[1:2] after 0~
)";
  CHECK(failure(out_of_step, out_of_step, 4).find("nothing makes it wait") != std::string::npos);
}

TEST_CASE("an instruction that reads and writes overlapping ranges is refused") {
  auto const shifting = "round 0\n  0 copy output[0:2] into output[1:2]\n";
  CHECK(failure(shifting, shifting, 4).find("reads and writes overlapping ranges") != std::string::npos);
}

TEST_CASE("reads of unwritten chunks and writes to the input are refused") {
  CHECK(failure("round 0\n  0 copy scratch[0] into output[0]\n", "").find("before anything is there") !=
        std::string::npos);
  CHECK(failure("round 0\n  0 copy output[0] into input[0]\n", "") == "rank 0: instruction 0: writes the input");
  CHECK(failure("", "") == "rank 0: output[0] is never written");
}

TEST_CASE("a chunk has one final instruction, the one that completes the sum") {
  std::string const right = root;
  auto const without = std::string(right).replace(right.find(" final"), 6, "");
  CHECK(failure(without, leaf) == "rank 0: output[0] is complete, but nothing that made it is final");
  CHECK(failure("round 0\n  0 copy input[0] into output[0] final\n", "").find("writes only chunk 0 of rank 0") !=
        std::string::npos);
  auto const twice = right + "  2 copy output[0] into scratch[0] final after 0~\n";
  CHECK(failure(twice, leaf).find("was finished before") != std::string::npos);
  auto const adds = right + "  2 recv_reduce output[0] into scratch[0] from 1 message 1 after 0~\n";
  CHECK(failure(adds, std::string(leaf) + "  2 send input[0] to 0 message 1\n").find("adds to a finished result") !=
        std::string::npos);
}

TEST_CASE("a message whose ends differ in length or lane is refused") {
  auto const other_lane = std::string(leaf).replace(std::string(leaf).find("message 0\n"), 10, "message 0 lane 1\n");
  CHECK(failure(root, other_lane).find("another length or lane") != std::string::npos);
}

TEST_CASE("channels with different digests are refused") {
  auto programs = programs_of(algorithms::ring, {.ranks = 3});
  programs[1].channels[0].receive_digest ^= 1;
  CHECK(verify::check(programs).failure == "rank 0: the digests of the messages with rank 1 differ");
}

TEST_CASE("programs of different specs are refused") {
  auto programs = programs_of(algorithms::ring, {.ranks = 3});
  programs[2] = programs_of(algorithms::ring, {.ranks = 3, .in_place = true})[2];
  CHECK(verify::check(programs).failure == "rank 2: another spec than rank 0");
  programs.pop_back();
  CHECK(verify::check(programs).failure == "2 programs for 3 ranks");
}

TEST_CASE("a spec that cannot be built is refused with the reason") {
  CHECK(verify::check(algorithms::ring, {.op = Op::gather, .algorithm = "ring", .ranks = 3}).failure ==
        "ring does all_reduce, reduce, all_gather and reduce_scatter, not gather");
  CHECK(verify::check(algorithms::ring, {.algorithm = "ring", .ranks = 0}).failure.starts_with("ranks is 0"));
}

TEST_CASE("plans with overlapping ranges and with strides are proved and compute their operation") {
  for (auto const* algorithm : {&verify::halving_doubling, &verify::strided_halving})
    for (std::uint32_t p : {2u, 4u, 8u, 16u, 32u})
      for (bool in_place : {false, true}) {
        auto const programs = programs_of(*algorithm, {.ranks = p, .in_place = in_place});
        REQUIRE(verify::check(programs).failure == "");
        auto const problem = verify::Problem(programs.front().spec, 3 * p + 1);
        verify::Interpreter interpreter(programs);
        for (std::uint32_t seed = 1; seed <= 5; ++seed) {
          REQUIRE(interpreter.run_shuffled(problem.inputs, problem.sizes, 3, seed));
          REQUIRE(solves(interpreter, problem, programs.front().spec));
        }
      }
}

TEST_CASE("docs/explanation/plans.md quotes the verifier's texts") {
  std::ifstream file(CHORUS_SOURCE_DIR "/docs/explanation/plans.md");
  std::stringstream text;
  text << file.rdbuf();
  auto const quotes = [&](std::vector<Program> const& programs) {
    auto const report = verify::check(programs);
    CAPTURE(report.failure);
    CHECK(text.str().find("\n" + report.failure + "\n") != std::string::npos);
  };
  auto wrong_chunk = programs_of(algorithms::ring, {.ranks = 3});
  wrong_chunk[0].instructions[3].src_chunk = 0;
  quotes(wrong_chunk);
  auto no_wait = programs_of(algorithms::ring, {.ranks = 3});
  no_wait[0].dependencies.pop_back();
  no_wait[0].dependency_begin.back() -= 1;
  quotes(no_wait);
}
