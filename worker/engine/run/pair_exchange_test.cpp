// Repeated calls of two ranks, which are sent and accepted as a whole.
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "worker/engine/testing/puppets/pair.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using links::CoalescedFrame;
using links::FrameHeader;
using links::FrameType;
using links::Taken;

namespace {

void make_again(Pair::Form form) {
  Pair pair(form);
  pair.call_first();
  auto const& first = pair.result();
  for (std::uint64_t run = 2; run <= 5; ++run) {
    pair.call(run);
    REQUIRE(pair.out->coalesced_frames.size() == run - 1);
    auto const& [open, data] = pair.out->coalesced_frames.back();
    CHECK((open.header.type == FrameType::open && open.header.run == run && open.header.epoch == 1));
    CHECK((data.header.type == FrameType::data && data.header.run == run && data.payload.size() == 12));
    CHECK(links::check(open.header).has_value());
    CHECK(links::check(data.header).has_value());
    CHECK_FALSE(pair.has_ended());
    pair.pass(2ms);
    CHECK(pair.bring(run));
    CHECK(pair.sum_is_right());
    CHECK(pair.out->frames.empty());
    auto const& again = pair.result();
    CHECK(again.statistics.seconds() == 0.002);
    CHECK(again.statistics.wait_seconds == 0.002);
    CHECK(again.statistics.bytes_sent == first.statistics.bytes_sent);
    CHECK(again.statistics.bytes_received == first.statistics.bytes_received);
    CHECK(again.statistics.steps == first.statistics.steps);
    REQUIRE(again.trace->instructions.size() == first.trace->instructions.size());
    for (std::size_t i = 0; i < again.trace->instructions.size(); ++i) {
      auto const &step = again.trace->instructions[i], &step_of_first = first.trace->instructions[i];
      CHECK((step.op == step_of_first.op && step.peer == step_of_first.peer && step.bytes == 12));
      CHECK(step.done_ns == (step.op == plan::Opcode::send ? 0 : 2000000));
      // Ready at the start, or at the end of a step that takes until then.
      CHECK((step.ready_ns == 0 || (i != 0 && step.ready_ns == again.trace->instructions[i - 1].done_ns)));
    }
  }
  auto const traffic = pair.book.read();
  REQUIRE(traffic.size() == 1);
  CHECK(traffic[0].sent_bytes == 5 * 12);
  CHECK(traffic[0].received_bytes == 5 * 12);
}

}  // namespace

TEST_CASE("a repeated call is sent as a whole, accepted as a whole, and reports the same of itself") {
  for (plan::Rank const real : {0U, 1U})
    for (bool const in_place : {false, true}) make_again({real, in_place});
}

TEST_CASE("up to 8 KiB, in one segment, and no more") {
  auto const is_sent_as_a_whole = [](Pair::Form const& form) {
    Pair pair(form);
    pair.call_first();
    pair.call(2);
    bool const was_sent = !pair.out->coalesced_frames.empty();
    CHECK(pair.bring(2) == was_sent);
    CHECK(pair.sum_is_right());
    return was_sent;
  };
  for (bool const in_place : {false, true}) {
    CHECK(is_sent_as_a_whole({.in_place = in_place, .elements = 1}));
    CHECK(is_sent_as_a_whole({.in_place = in_place, .elements = 2048}));
    CHECK_FALSE(is_sent_as_a_whole({.in_place = in_place, .elements = 2049}));
    CHECK(is_sent_as_a_whole({.in_place = in_place, .elements = 16, .segment_bytes = 64}));
    CHECK_FALSE(is_sent_as_a_whole({.in_place = in_place, .elements = 17, .segment_bytes = 64}));
  }
}

TEST_CASE("the time in which the exchange was sent counts as such") {
  Pair pair;
  pair.call_first();
  pair.out->on_coalesced_frame = [&pair] { pair.pass_unnoticed(3us); };
  for (std::uint64_t run = 2; run <= 3; ++run) {
    pair.call(run);
    pair.pass_unnoticed(4us);
    CHECK(pair.bring(run));
    CHECK(pair.result().statistics.seconds() == 7e-6);
    for (auto const& step : pair.result().trace->instructions)
      CHECK(step.done_ns == (step.op == plan::Opcode::send ? 3000 : 7000));
  }
  CHECK(pair.book.read()[0].send_busy_seconds == 6e-6);
}

TEST_CASE("the bytes on the wire are the same in both cases") {
  Pair pair;
  pair.call(1);
  auto const one_by_one = pair.out->frames;
  pair.bring(1);
  pair.call(2);
  REQUIRE(one_by_one.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    auto as_first = pair.out->coalesced_frames[0][i];
    as_first.header.run = 1;
    CHECK(as_first.header == one_by_one[i].header);
    CHECK(as_first.payload == one_by_one[i].payload);
  }
  pair.bring(2);
}

TEST_CASE("only the expected frame is accepted as a whole, to the last bit") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  auto const right = pair.coalesced_frame(2);
  for (std::size_t bit = 0; bit < 8 * (2 * sizeof(FrameHeader) + right.opening.size()); ++bit) {
    auto coalesced_frame = right;
    Bytes opening(right.opening.begin(), right.opening.end());
    coalesced_frame.opening = opening;
    auto const byte = bit / 8;
    auto* const changed = byte < sizeof(FrameHeader) ? reinterpret_cast<std::byte*>(&coalesced_frame.open) + byte
                          : byte < 2 * sizeof(FrameHeader)
                              ? reinterpret_cast<std::byte*>(&coalesced_frame.data) + byte - sizeof(FrameHeader)
                              : opening.data() + byte - 2 * sizeof(FrameHeader);
    *changed ^= std::byte{1} << bit % 8;
    REQUIRE_FALSE(pair.in->takes_in(coalesced_frame));
  }
  CHECK(pair.bring(2));
  CHECK(pair.sum_is_right());
}

TEST_CASE("a frame of another worker, or one that is sent again, is not accepted as a whole either") {
  Pair pair;
  auto const incarnation = std::make_shared<Wire>(), stranger = std::make_shared<Wire>();
  pair.engine.adopt(incarnation, {"w1", 102});
  pair.engine.adopt(stranger, {"w2", 101});
  pair.call_first();
  pair.call(2);
  auto const coalesced_frame = pair.coalesced_frame(2);
  CHECK_FALSE(incarnation->takes_in(coalesced_frame));
  CHECK_FALSE(stranger->takes_in(coalesced_frame));
  CHECK(pair.in->takes_in(coalesced_frame));
  CHECK_FALSE(pair.in->takes_in(coalesced_frame));
  pair.in->rest();
  CHECK_FALSE(pair.in->takes_in(coalesced_frame));
  CHECK(pair.sum_is_right());
}
