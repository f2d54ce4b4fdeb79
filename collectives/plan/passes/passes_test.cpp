#include "collectives/plan/passes/passes.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

#include "collectives/core/errc.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/plan/toy_for_tests.hpp"

using namespace chorus;
using namespace chorus::plan;

namespace {

// An author's rounds for rank 0 of 4, with vectors of 8 chunks.
class Rounds : public Sink {
 public:
  explicit Rounds(bool in_place = false) {
    program.spec = {.algorithm = "hand_written", .ranks = 4, .in_place = in_place};
    program.chunks = 8;
    program.scratch_chunks = 2;
    program.input = program.output = {0, 8};
    program.round_begin = {0, 0};
  }
  Rounds& next_round() {
    program.round_begin.back() = static_cast<std::uint32_t>(size());
    program.round_begin.push_back(program.round_begin.back());
    return *this;
  }
  Program built() {
    program.round_begin.back() = static_cast<std::uint32_t>(size());
    program.instructions.assign(instructions().begin(), instructions().end());
    for (auto& instruction : program.instructions) instruction.lane = lane;
    unify_in_place(program);
    order_rounds(program);
    number_messages(program);
    derive_dependencies(program);
    widen_partials(program);
    digest_channels(program, true);
    return program;
  }

  Program program;
  std::uint16_t lane = 0;
};

using Waits = std::vector<Dependency>;
Waits waits(Program const& program, std::size_t instruction) {
  auto const list = program.dependencies_of(instruction);
  return {list.begin(), list.end()};
}
constexpr bool segmentwise = true, wholly = false;

Slice every(std::uint32_t stride, Slice slice) {
  slice.stride = stride;
  return slice;
}

}  // namespace

TEST_CASE("sends are first in their round, and read the values from before the round") {
  Rounds rounds;
  rounds.recv(1, output(0));
  rounds.send(1, output(0));
  rounds.copy(output(0), output(1));
  auto const program = rounds.built();
  CHECK(to_string(program.instructions[0]) == "send output[0] to 1 message 0");
  CHECK(to_string(program.instructions[1]) == "recv into output[0] from 1 message 0");
  CHECK(to_string(program.instructions[2]) == "copy output[0] into output[1]");
  CHECK(waits(program, 1) == Waits{{0, segmentwise}});  // the receive must not overtake the send
}

TEST_CASE("a reader waits segment by segment for a writer of the same range") {
  Rounds rounds;
  rounds.recv(1, output(2));
  rounds.next_round().send(2, output(2));
  CHECK(waits(rounds.built(), 1) == Waits{{0, segmentwise}});
}

TEST_CASE("a reader of other chunks does not wait, and a reader of an overlapping range waits for the whole writer") {
  Rounds rounds;
  rounds.recv(1, output(2, 2));
  rounds.next_round().send(2, output(4, 2));
  rounds.next_round().send(2, output(3, 2));
  rounds.next_round().send(2, output(2));
  auto const program = rounds.built();
  CHECK(waits(program, 1).empty());
  CHECK(waits(program, 2) == Waits{{0, wholly}});
  CHECK(waits(program, 3) == Waits{{0, wholly}});
}

TEST_CASE("chunks of the same number in two buffers are independent") {
  Rounds rounds;
  rounds.recv(1, output(1));
  rounds.recv(2, scratch(1));
  rounds.next_round().send(3, scratch(1));
  rounds.send(3, input(1));
  auto const program = rounds.built();
  CHECK(waits(program, 2) == Waits{{1, segmentwise}});
  CHECK(waits(program, 3).empty());
}

TEST_CASE("interleaved strided ranges are independent, and equal ones wait segment by segment") {
  Rounds rounds;
  rounds.recv(1, every(2, output(0, 4)));
  rounds.next_round().send(1, every(2, output(1, 4)));
  rounds.next_round().send(1, every(2, output(0, 4)));
  rounds.next_round().send(1, every(4, output(0, 2)));
  auto const program = rounds.built();
  CHECK(waits(program, 1).empty());
  CHECK(waits(program, 2) == Waits{{0, segmentwise}});
  CHECK(waits(program, 3) == Waits{{0, wholly}});
}

TEST_CASE("a writer waits for all readers since the last write, which implies a wait for that write") {
  Rounds rounds;
  rounds.recv(1, output(0));
  rounds.next_round().send(2, output(0));
  rounds.send(3, output(0));
  rounds.next_round().recv(1, output(0));
  CHECK(waits(rounds.built(), 3) == Waits{{1, segmentwise}, {2, segmentwise}});
}

TEST_CASE("instructions with one conflict between different ranges wait for the whole") {
  Rounds rounds;
  rounds.copy(output(0, 2), scratch(0, 2));
  rounds.next_round().copy(scratch(0, 2), output(1, 2));  // reads the result of 0, but also overwrites its source
  CHECK(waits(rounds.built(), 1) == Waits{{0, wholly}});
}

TEST_CASE("recv_reduce reads its operand and writes its destination") {
  Rounds rounds;
  rounds.recv_reduce(1, input(0), output(0));
  rounds.next_round().recv_reduce(2, output(0), output(0), Final::yes);
  rounds.next_round().send(1, output(0));
  auto const program = rounds.built();
  CHECK(waits(program, 0).empty());
  CHECK(waits(program, 1) == Waits{{0, segmentwise}});
  CHECK(waits(program, 2) == Waits{{1, segmentwise}});
}

TEST_CASE("a local reduction reads its destination") {
  Rounds rounds;
  rounds.recv(1, output(0));
  rounds.recv(2, scratch(0));
  rounds.next_round().reduce(scratch(0), output(0));
  CHECK(waits(rounds.built(), 2) == Waits{{0, segmentwise}, {1, segmentwise}});
}

TEST_CASE("a plan in place names no input, and has no copies of a range onto itself") {
  Rounds rounds(true);
  rounds.copy(input(0), output(0));
  rounds.copy(input(0), output(1));
  rounds.next_round().send(1, input(2));
  rounds.recv(1, output(2));
  auto const program = rounds.built();
  CHECK(program.round_begin == std::vector<std::uint32_t>{0, 1, 3});
  CHECK(to_string(program.instructions[0]) == "copy output[0] into output[1]");
  CHECK(to_string(program.instructions[1]) == "send output[2] to 1 message 0");
  CHECK(waits(program, 2) == Waits{{1, segmentwise}});  // out of place they would be independent
}

TEST_CASE("a final copy of a range onto itself stays, because it divides") {
  Rounds rounds(true);
  rounds.copy(input(0), output(0), Final::yes);
  CHECK(rounds.built().instructions.size() == 1);
}

TEST_CASE("messages are numbered per peer and direction") {
  Rounds rounds;
  rounds.send(2, input(0));
  rounds.send(1, input(1));
  rounds.recv(2, output(0));
  rounds.next_round().send(2, input(2));
  auto const program = rounds.built();
  CHECK(program.instructions[0].message == 0);
  CHECK(program.instructions[1].message == 0);
  CHECK(program.instructions[2].message == 0);
  CHECK(program.instructions[3].message == 1);
  REQUIRE(program.channels.size() == 2);
  CHECK(program.channel(1)->sends == 1);
  CHECK(program.channel(2)->sends == 2);
  CHECK(program.channel(2)->receives == 1);
  CHECK(program.channel(3) == nullptr);
}

TEST_CASE("both ends of a channel compute one digest, whatever buffers they use") {
  Rounds sender, receiver;
  sender.send(1, input(3));
  sender.next_round().send(1, output(4, 2));
  receiver.recv_reduce(2, input(3), output(3));
  receiver.next_round().recv(2, output(4, 2));
  CHECK(sender.built().channel(1)->send_digest == receiver.built().channel(2)->receive_digest);
  CHECK(sender.built().channel(1)->receive_digest == 0);  // no messages
}

TEST_CASE("a message of other chunks, length, lane or place in the order changes the digest") {
  auto const digest = [](std::initializer_list<Slice> slices, std::uint16_t lane = 0) {
    Rounds rounds;
    for (auto const& slice : slices) rounds.next_round().send(1, slice);
    rounds.lane = lane;
    return rounds.built().channel(1)->send_digest;
  };
  auto const plain = digest({output(0), output(1)});
  CHECK(digest({output(1), output(0)}) != plain);
  CHECK(digest({output(0), output(2)}) != plain);
  CHECK(digest({output(0), output(1, 2)}) != plain);
  CHECK(digest({output(0)}) != plain);
  CHECK(digest({output(0), output(1)}, 1) != plain);
  CHECK(digest({every(2, output(0, 2))}) != digest({every(3, output(0, 2))}));
}

TEST_CASE("if chunks change their numbers on the way, digests cover number, lane and length only") {
  Rounds sender, receiver;
  sender.send(1, input(0, 2));
  receiver.recv(2, output(6, 2));
  auto sent = sender.built(), received = receiver.built();
  CHECK(sent.channel(1)->send_digest != received.channel(2)->receive_digest);
  for (auto* program : {&sent, &received}) {
    number_messages(*program);
    digest_channels(*program, false);
  }
  CHECK(sent.channel(1)->send_digest == received.channel(2)->receive_digest);
}

TEST_CASE("build refuses specs and ranks that do not fit, with the reason") {
  CHECK(build(toy, toy_spec(3), 2).value().instructions.size() == 6);
  CHECK(build(toy, toy_spec(3), 4).error().code == PlanErrc::rank_out_of_range);
  CHECK(build(toy, toy_spec(0), 0).error().code == PlanErrc::bad_parameter);
  CHECK(build(toy, {.algorithm = "ring", .ranks = 4}, 0).error().code == PlanErrc::unknown_algorithm);
}

TEST_CASE("a partial sum that only the next reduction reads is wide, and values that leave the rank are not") {
  Rounds rounds;
  rounds.recv(1, output(0));
  rounds.next_round().recv_reduce(2, output(0), output(0));
  rounds.next_round().reduce(input(0), output(0));
  rounds.next_round().recv_reduce(3, output(0), output(0), Final::yes);
  rounds.next_round().send(1, output(0));
  auto const all_here = rounds.built();
  CHECK(to_string(all_here.instructions[0]) == "recv into output[0] from 1 message 0");
  CHECK(to_string(all_here.instructions[1]) == "recv_reduce output[0] into output[0] from 2 message 0 wide_result");
  CHECK(to_string(all_here.instructions[2]) == "reduce input[0] into output[0] wide_operand wide_result");
  CHECK(to_string(all_here.instructions[3]) ==
        "recv_reduce output[0] into output[0] from 3 message 0 wide_operand final");

  Rounds passed_on;
  passed_on.recv_reduce(1, input(0), output(0));
  passed_on.next_round().send(2, output(0));
  passed_on.next_round().recv_reduce(1, output(0), output(0), Final::yes);
  CHECK_FALSE(passed_on.built().instructions[0].has_wide_result());
}

TEST_CASE("a partial sum that is read in another range than it was written in is not wide") {
  Rounds rounds;
  rounds.recv(1, output(0, 2));
  rounds.next_round().recv_reduce(2, output(0), output(0), Final::yes);
  rounds.recv_reduce(2, output(1), output(1), Final::yes);
  for (auto const& instruction : rounds.built().instructions) {
    CHECK_FALSE(instruction.has_wide_result());
    CHECK_FALSE(instruction.has_wide_operand());
  }
}
