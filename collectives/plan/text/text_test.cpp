#include "collectives/plan/text/text.hpp"

#include <doctest/doctest.h>

#include <random>

#include "collectives/core/errc.hpp"
#include "collectives/plan/toy_for_tests.hpp"

using namespace chorus;
using namespace chorus::plan;

namespace {

auto const everything = R"(plan all_reduce hand_written ranks=8 root=3 arity=2 out_of_place shape=4,2
rank 5 chunks 8 scratch 2 rooted equal one_by_one
channel 1 sends 1 00000000000000ff receives 0 0000000000000000
channel 7 sends 0 0000000000000000 receives 2 ffffffffffffffff
round 0
  0 recv into scratch[1] from 7 message 0
round 1
round 2
  1 recv_reduce output[0:3:2] into output[1:3:2] from 7 message 1 lane 65535 wide_result after 0
  2 reduce scratch[1] into output[0] wide_operand partial_operand partial_other final after 0~ 1
  3 send output[4:4] to 1 message 0
  4 copy input[7] into scratch[0]
)";

std::string what_is_wrong(std::string text) { return parse_text(text).error().detail; }

// Returns `everything` with one part replaced.
std::string changed(std::string_view part, std::string_view by) {
  std::string text = everything;
  auto const at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

}  // namespace

TEST_CASE("every word of the text form is read and written") {
  CHECK(to_text(parse_text(everything).value()) == everything);
  auto const listed = changed("shape=4,2", "shape=4,2 by_position=7,6,5,4,3,2,1,0");
  CHECK(to_text(parse_text(listed).value()) == listed);
  auto const without_shape = changed("shape=4,2", "by_position=0,1,2,3,4,5,7,6");
  CHECK(to_text(parse_text(without_shape).value()) == without_shape);
}

TEST_CASE("every built program reads back from its text") {
  for (Rank rank = 0; rank < 4; ++rank) {
    auto const program = build(toy, toy_spec(9), rank).value();
    CHECK(parse_text(to_text(program)).value() == program);
  }
}

TEST_CASE("doubled blanks and empty lines are ignored") {
  CHECK(parse_text(changed("round 1\n", "\n  round   1  \n\n")).value() == parse_text(everything).value());
}

TEST_CASE("a single chunk has no stride, whatever its slice says") {
  CHECK(parse_text(changed("scratch[1] from", "scratch[1:1:2] from")).value() == parse_text(everything).value());
}

TEST_CASE("the refusal of a malformed text names the line") {
  CHECK(parse_text("").error().code == PlanErrc::malformed_text);
  CHECK(what_is_wrong(changed("plan all_reduce", "plan all_red")) == "line 1: this is not an operation");
  CHECK(what_is_wrong(changed("root=3", "root=8")) == "line 1: root is 8; expected 0..7");
  CHECK(what_is_wrong(changed("ranks=8", "ranks=99999999999")) ==
        "line 1: '99999999999' is not a number that fits here");
  CHECK(what_is_wrong(changed("shape=4,2", "shape=4,x")) == "line 1: 'x' is not a number that fits here");
  CHECK(what_is_wrong(changed("shape=4,2", "shapes=4")) == "line 1: unexpected 'shapes=4'");
  CHECK(what_is_wrong(changed("shape=4,2", "by_position=1,0")) ==
        "line 1: by_position has 2 numbers; expected one for each of 8 ranks");
  CHECK(what_is_wrong(changed("rank 5", "rank 8")) == "line 2: there is no such rank");
  CHECK(what_is_wrong(changed("chunks 8", "chunks 0")) == "line 2: there is at least one chunk");
  CHECK(what_is_wrong(changed("channel 7", "channel 1")) == "line 4: channels are sorted by peer");
  CHECK(what_is_wrong(changed("channel 7", "channel 5")) == "line 4: the peer is not another rank");
  CHECK(what_is_wrong(changed("  0 recv", "  1 recv")) == "line 6: instructions are numbered from 0");
  CHECK(what_is_wrong(changed("round 1", "round 2")) == "line 7: rounds are numbered from 0");
  CHECK(what_is_wrong(changed("0 recv", "0 receive")) == "line 6: 'receive' is not an opcode");
  CHECK(what_is_wrong(changed("scratch[1] from", "scratch[2] from")) == "line 6: a slice lies outside its buffer");
  CHECK(what_is_wrong(changed("output[1:3:2]", "output[1:4:2]")) ==
        "line 9: both slices of an instruction have one shape");
  CHECK(what_is_wrong(changed("[1:3:2]", "[6:3:2]")) == "line 9: a slice lies outside its buffer");
  CHECK(what_is_wrong(changed("65535", "65536")) == "line 9: '65536' is not a number that fits here");
  CHECK(what_is_wrong(changed("lane 65535 wide_result after 0", "after 1")) ==
        "line 9: an instruction waits only for earlier ones");
  CHECK(what_is_wrong(changed("0~ 1\n", "0~ -1\n")) == "line 10: '-1' is not a number that fits here");
  CHECK(what_is_wrong(changed("output[4:4]", "output[4:4")) ==
        "line 11: 'output[4:4' is not a slice such as output[2]");
  CHECK(what_is_wrong(changed("output[4:4]", "output[4:4:1:1]")) ==
        "line 11: 'output[4:4:1:1]' is not a slice such as output[0:4:2]");
  CHECK(what_is_wrong(changed("to 1 message 0", "to 1")) == "line 11: expected 'message', found ''");
  CHECK(what_is_wrong(changed("into scratch[0]", "into scratch[0] please")) == "line 12: unexpected 'please'");
}

TEST_CASE("a damaged text is refused, or is another well-formed program") {
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = everything;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      auto const at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 8);
      else if (random() % 2 == 0)
        text.insert(at, 1, " 0129:[]~=\nx"[random() % 12]);
      else
        text[at] = static_cast<char>(random() % 256);
    }
    auto const program = parse_text(text);
    if (program.has_value())
      CHECK(parse_text(to_text(program.value())).value() == program.value());
    else
      CHECK(program.error().code == PlanErrc::malformed_text);
  }
}
