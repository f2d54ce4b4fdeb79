// Repeated calls of two ranks in which something else happens than the arrival of the whole expected message.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/testing/puppets/pair.hpp"
#include "worker/links/frames/errc.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;
using links::CoalescedFrame;
using links::FrameHeader;
using links::FrameType;
using links::Taken;

namespace {

FrameHeader header_of(FrameType type, std::uint64_t run, std::uint32_t length) {
  FrameHeader header;
  header.type = type;
  header.run = run;
  header.epoch = 1;
  header.length = length;
  return header;
}

}  // namespace

TEST_CASE(
    "if the peer's frames come one by one, or the peer was faster, or the link is slow, the call is an ordinary one") {
  for (int const how : {0, 1, 2}) {
    Pair pair;
    pair.call_first();
    for (std::uint64_t run = 2; run <= 4; ++run) {
      auto const coalesced_frame = pair.coalesced_frame(run);
      if (how == 1) CHECK_FALSE(pair.bring(run));
      pair.out->takes = how != 2 ? links::Taken::whole : links::Taken::nothing;
      pair.call(run);
      if (how == 0) {
        pair.in->bring(coalesced_frame.open, {coalesced_frame.opening.begin(), coalesced_frame.opening.end()});
        pair.in->rest();
        CHECK_FALSE(pair.has_ended());
        pair.in->bring(coalesced_frame.data, {coalesced_frame.payload.begin(), coalesced_frame.payload.end()});
        pair.in->rest();
      }
      if (how == 2) CHECK_FALSE(pair.bring(run));
      CHECK(pair.sum_is_right());
      CHECK(pair.out->coalesced_frames.size() == (how == 0 ? run - 1 : 0));
      CHECK(pair.out->count(FrameType::open) == (how == 0 ? 0 : run - 1));
      CHECK(pair.out->count(FrameType::data) == (how == 0 ? 0 : run - 1));
    }
  }
}

TEST_CASE("a frame that the link has taken only in part is in flight, and the call goes on when it is sent") {
  for (plan::Rank const real : {0U, 1U})
    for (bool const in_place : {false, true}) {
      Pair pair({.real = real, .in_place = in_place});
      pair.call_first();
      pair.out->takes = Taken::in_part;
      for (std::uint64_t run = 2; run <= 3; ++run) {
        pair.call(run);
        REQUIRE(pair.out->coalesced_frames.size() == run - 1);
        auto const progress = pair.engine.progress(run);
        REQUIRE(progress.size() == 1);
        CHECK(progress[0].bytes_sent == 0);
        CHECK_FALSE(pair.bring(run));
        CHECK_FALSE(pair.has_ended());
        pair.pass_unnoticed(5us);
        if (run == 3) pair.out->handler->frame_sent(pair.out->coalesced_frames.back()[0].header);
        CHECK_FALSE(pair.has_ended());
        pair.out->handler->frame_sent(pair.out->coalesced_frames.back()[1].header);
        pair.out->rest();
        CHECK(pair.sum_is_right());
        CHECK(pair.out->frames.empty());
      }
      auto const traffic = pair.book.read();
      CHECK(traffic[0].sent_bytes == 3 * 12);
      CHECK(traffic[0].send_busy_seconds == 10e-6);
    }
}

TEST_CASE("if that link is lost before the rest is sent, or the run ends, nothing of the call is left with the link") {
  SUBCASE("lost") {
    Pair pair;
    pair.call_first();
    pair.out->takes = Taken::in_part;
    pair.call(2);
    pair.bring(2);
    pair.out->break_off();
    CHECK(pair.failure() == "lost rank 1 (w1) while sending message 1 of 1 (step 1 of 2): closed by the peer");
    CHECK_FALSE(pair.engine.is_busy());
  }
  SUBCASE("aborted") {
    Pair pair;
    pair.call_first();
    pair.out->takes = Taken::in_part;
    pair.call(2);
    pair.out->released.clear();
    pair.engine.abort(2, Error(EngineErrc::aborted, "not wanted"));
    CHECK(mentions(pair.failure(), "not wanted"));
    CHECK(pair.out->released == std::vector<std::uint64_t>{2});
  }
}

TEST_CASE("frames that arrive behind the message meet a run that has ended") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  auto const coalesced_frame = pair.coalesced_frame(2);
  REQUIRE(pair.in->takes_in(coalesced_frame));
  CHECK_FALSE(pair.has_ended());
  SUBCASE("an abort, which comes too late") {
    links::FailureNoticeBytes bytes;
    auto const length = links::encode({pair.spec().token, links::FailureNoticeCode::aborted, {1}, "enough"}, bytes);
    pair.in->bring(header_of(FrameType::abort, 2, length), {bytes.begin(), bytes.begin() + length});
  }
  SUBCASE("a question") {
    Bytes bytes(sizeof(links::Ask));
    auto const length = links::encode(links::Ask{pair.spec().token}, bytes);
    pair.in->bring(header_of(FrameType::ask, 2, length), bytes);
    pair.in->rest();
    REQUIRE(pair.in->count(FrameType::tell) == 1);
    CHECK(links::decode_tell(pair.in->frames.back().payload)->head.doing == links::Doing::ended);
  }
  SUBCASE("the same once more") { CHECK_FALSE(pair.in->bring(coalesced_frame)); }
  pair.in->rest();
  CHECK(pair.sum_is_right());
  for (std::uint64_t run = 3; run <= 4; ++run) {
    pair.call(run);
    CHECK(pair.bring(run));
    CHECK(pair.sum_is_right());
  }
}

TEST_CASE("a second call at the same time is an ordinary one, and ends whichever comes first") {
  for (bool const second_first : {false, true}) {
    Pair pair;
    pair.call_first();
    auto const other = std::make_shared<RunKind>(pair.spec());
    std::array<float, 3> sums{};
    pair.call(2, other, sums);
    pair.bring(2);
    sums = {};
    pair.call(3);
    pair.call(4, other, sums);
    for (auto const run : second_first ? std::array{4, 3} : std::array{3, 4})
      CHECK(pair.bring(static_cast<std::uint64_t>(run)) == (run == 3));
    CHECK(pair.has_ended());
    CHECK(sums == std::array{11.F, 22.F, 33.F});
    CHECK(pair.out->coalesced_frames.size() == 1);
    CHECK_FALSE(pair.engine.is_busy());
  }
}

TEST_CASE("the progress of an exchange can be asked for at once") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  auto const progress = pair.engine.progress(2);
  REQUIRE(progress.size() == 1);
  CHECK(progress[0].steps_done == 1);
  CHECK(progress[0].bytes_sent == 12);
  CHECK_FALSE(pair.bring(2));
  CHECK(pair.sum_is_right());
}

TEST_CASE("an exchange gives the same result whenever its progress is asked for, by every plan") {
  std::minstd_rand random(1);
  std::uint64_t run = 0;
  for (std::uint32_t ranks = 2; ranks <= 4; ++ranks) {
    FleetOptions options{.ranks = ranks};
    options.network.seed = ranks;
    LoopbackFleet fleet(std::move(options));
    for (auto const op : all_ops)
      for (auto const* algorithm : algorithms::all_for(op))
        for (auto const& spec : algorithms::representative_specs(*algorithm, op, ranks))
          for (int call = 0; call < 4; ++call) {
            Case c{.algorithm = algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
            c.dtype = Dtype::i32;
            c.elements = op == Op::barrier ? ranks : 12;
            c.run = ++run;
            Collective collective(fleet, c, fleet.now());
            collective.start();
            while (collective.ended() < ranks) {
              fleet.let_move(1 + random() % 4);
              static_cast<void>(fleet.engine(static_cast<plan::Rank>(random() % ranks)).progress({}));
            }
            auto const wrong = collective.wrong();
            REQUIRE_MESSAGE(wrong.empty(), to_string(c), ": ", wrong);
          }
  }
}

TEST_CASE("a peer that does not answer is asked, and named when the time is up, as in any other run") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  pair.pass(300ms);
  CHECK(pair.out->count(FrameType::ask) + pair.in->count(FrameType::ask) == 1);
  CHECK(pair.out->count(FrameType::open) == 0);  // the open was sent
  auto const progress = pair.engine.progress(std::nullopt);
  REQUIRE(progress.size() == 1);
  CHECK(progress[0].run == 2);
  CHECK(progress[0].steps_done == 1);
  REQUIRE(progress[0].waiting_for.size() == 1);
  CHECK(progress[0].waiting_for[0].rank == 1);
  SUBCASE("its message comes after all") {
    CHECK_FALSE(pair.bring(2));
    CHECK(pair.sum_is_right());
    auto const& steps = pair.result().trace->instructions;
    CHECK(steps[0].op == plan::Opcode::send);
    CHECK(steps[0].done_ns == 0);
    CHECK(pair.result().statistics.wait_seconds == 300000000 * 1e-9);
  }
  SUBCASE("it stays silent") {
    for (auto passed = 0ms; passed < 6s; passed += 200ms) pair.pass(200ms);
    CHECK(mentions(pair.failure(), "rank 1 (w1)"));
  }
  CHECK_FALSE(pair.engine.is_busy());
}

TEST_CASE("a rank that was stopped, and is asked before it has read its clock, accuses no other") {
  Pair pair;
  pair.call_first();
  pair.call(2);
  pair.pass(300ms);
  pair.pass_unnoticed(6s);
  Bytes bytes(sizeof(links::Ask));
  pair.in->bring(header_of(FrameType::ask, 2, links::encode(links::Ask{pair.spec().token}, bytes)), bytes);
  pair.in->rest();
  REQUIRE(pair.in->count(FrameType::tell) == 1);
  CHECK(links::decode_tell(pair.in->frames.back().payload)->head.suspicion == links::Suspicion::nobody);
  pair.pass_unnoticed(6s);
  CHECK(pair.engine.progress(2).front().waiting_for.front().suspicion == links::Suspicion::nobody);
  CHECK_FALSE(pair.bring(2));
  CHECK(pair.sum_is_right());
}

TEST_CASE("every event that ends an ordinary run ends an exchange, with the same words") {
  auto const words_of = [](bool made_again, std::function<void(Pair&, std::uint64_t)> const& happen) {
    Pair pair;
    if (made_again) pair.call_first();
    std::uint64_t const run = made_again ? 2 : 1;
    pair.call(run);
    CHECK(pair.out->coalesced_frames.size() == (made_again ? 1 : 0));
    happen(pair, run);
    // Waits for everything that a lost link might still bring.
    for (auto const time : {8000ms, 1000ms}) pair.pass(time);
    auto words = pair.failure();
    CHECK(words != "it has not failed");
    CHECK_FALSE(pair.engine.is_busy());
    for (auto at = words.find("run "); at != std::string::npos; at = words.find("run ", at + 1)) words[at + 4] = '#';
    return words;
  };
  auto const abort_by_peer = [](Pair& pair, std::uint64_t run) {
    links::FailureNoticeBytes bytes;
    auto const length = links::encode({pair.spec().token, links::FailureNoticeCode::aborted, {1}, "enough"}, bytes);
    pair.out->bring(header_of(FrameType::abort, run, length), {bytes.begin(), bytes.begin() + length});
    pair.out->rest();
  };
  auto const grant_by_peer = [](Pair& pair, std::uint64_t run) {
    auto header = header_of(FrameType::grant, run, 0);
    header.offset = 12;
    auto const why = pair.out->handler->frame_arrives(header);
    REQUIRE(why.has_error());
    CHECK(mentions(why.error().detail, "12 were granted before"));
    std::exchange(pair.out->handler, nullptr)->link_closed(why.error());
    pair.in->break_off();
  };
  auto const open_otherwise = [](Pair& pair, std::uint64_t run) {
    auto coalesced_frame = pair.coalesced_frame(run);
    pair.opening[8] ^= std::byte{1};
    CHECK_FALSE(pair.in->takes_in(coalesced_frame));
    pair.in->bring(coalesced_frame.open, {coalesced_frame.opening.begin(), coalesced_frame.opening.end()});
    pair.in->rest();
  };
  std::vector<std::function<void(Pair&, std::uint64_t)>> const ends{
      [](Pair& pair, std::uint64_t run) { pair.engine.abort(run, Error(EngineErrc::aborted, "not wanted")); },
      [](Pair& pair, std::uint64_t) { pair.engine.fence("w1", 102); },
      [](Pair& pair, std::uint64_t) { pair.in->handler->frame_is_corrupt(Error(links::LinkErrc::corrupt_frame, "x")); },
      [](Pair& pair, std::uint64_t) {
        pair.out->handler->frame_is_corrupt(Error(links::LinkErrc::corrupt_frame, "y"));
      },
      [](Pair& pair, std::uint64_t) { pair.engine.stop(); },
      [](Pair& pair, std::uint64_t) {
        pair.out->break_off();
        pair.in->break_off();
      },
      abort_by_peer,
      grant_by_peer,
      open_otherwise,
  };
  for (auto const& end : ends) CHECK(words_of(true, end) == words_of(false, end));
}

TEST_CASE("a program that sends what it has received is no exchange") {
  Pair pair({.algorithm = &algorithms::tree});
  pair.call(1);
  pair.in->bring(pair.coalesced_frame(1));
  pair.in->rest();
  pair.call(2);
  CHECK(pair.out->coalesced_frames.empty());
  pair.engine.abort(2, Error(EngineErrc::aborted, "enough"));
}
