// The collective suite over real sockets, and what only real sockets and threads can show.
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/testing/cases/suite.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

std::unique_ptr<Fleet> over_tcp(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, DataPlaneOptions{.partials_bytes = 0});
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t elements, std::uint64_t run = 1) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.run = run;
  return c;
}

}  // namespace

TEST_CASE("over TCP, every algorithm is exact for every group, count, segment size and operation") {
  check_every_shape(over_tcp, Depth::groups);
}

TEST_CASE("over TCP, a hundred runs in a row use the same links") { check_hundred_in_a_row(over_tcp); }

TEST_CASE("over TCP, several runs at once share the links") { check_several_at_once(over_tcp); }

TEST_CASE("over TCP, ranks may start in any order, long after the others") { check_late_starters(over_tcp); }

TEST_CASE("over TCP with checksums, every algorithm is exact as well") {
  DataPlaneOptions options;
  options.checksums = links::ChecksumMode::on;
  check_every_shape([&](std::uint32_t ranks) { return std::make_unique<TcpFleet>(ranks, options); }, Depth::few);
}

TEST_CASE("a worker that insists on checksums has no link with a peer that does without") {
  DataPlaneOptions insists, does_without;
  insists.checksums = links::ChecksumMode::on;
  does_without.checksums = links::ChecksumMode::off;
  TcpFleet strict(2, insists), lax(2, does_without);
  for (bool const dialer_insists : {true, false}) {
    auto& from = dialer_insists ? strict : lax;
    auto& to = dialer_insists ? lax : strict;
    Collective collective(from, case_of(algorithms::ring, 100));
    collective.spec(0).members[1].url = to.peer(1).url;
    collective.start(0);
    REQUIRE(collective.finish());
    auto const& detail = collective.result(0).status.error().detail;
    CHECK_MESSAGE(mentions(detail, "checksums"), detail);
  }
}

TEST_CASE("over TCP, a vector much larger than the socket buffers") {
  TcpFleet fleet(3, {});
  std::uint64_t run = 0;
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    auto c = case_of(*algorithm, 2000011, ++run);
    c.in_place = true;
    Collective collective(fleet, c);
    REQUIRE(collective.run());
    auto const wrong = collective.wrong();
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

TEST_CASE("a polling data plane computes the same") {
  DataPlaneOptions options;
  options.spin = 200us;
  TcpFleet fleet(2, options);
  Collective collective(fleet, case_of(algorithms::ring, 1009));
  REQUIRE(collective.run());
  CHECK(collective.wrong().empty());
}

TEST_CASE("a URL at which no process listens is in the error") {
  TcpFleet fleet(2, {});
  Collective collective(fleet, case_of(algorithms::ring, 100));
  collective.spec(0).members[1].url = "http://127.0.0.1:1";
  collective.start(0);
  REQUIRE(collective.finish());
  auto const& result = collective.result(0);
  REQUIRE(result.status.has_error());
  CHECK(result.status.error().code == EngineErrc::peer_lost);
  CHECK(mentions(result.status.error().detail, "http://127.0.0.1:1"));
  CHECK(result.culprits == std::vector<plan::Rank>{1});
}

TEST_CASE("a run whose time is over takes no link from another one that waits for the same answer") {
  namespace ip = boost::asio::ip;
  boost::asio::io_context io;
  ip::tcp::acceptor silent(io, {ip::address_v4::loopback(), 0});  // the system accepts connections, and nobody answers
  TcpFleet fleet(2, {});
  auto const started = [&](std::uint64_t run, std::chrono::milliseconds timeout) {
    auto c = case_of(algorithms::ring, 100, run);
    c.timeout = timeout;
    auto collective = std::make_unique<Collective>(fleet, c);
    collective->spec(0).members[1].url = "http://127.0.0.1:" + std::to_string(silent.local_endpoint().port());
    collective->start(0);
    return collective;
  };
  auto const brief = started(1, 100ms), patient = started(2, 4s);
  REQUIRE(brief->finish());
  CHECK(brief->result(0).status.error().code == EngineErrc::deadline_exceeded);
  REQUIRE(started(3, 100ms)->finish());  // by now the first dial has ended
  CHECK(patient->ended() == 0);
  silent.close();
  REQUIRE(patient->finish());
  CHECK(patient->result(0).status.error().code == EngineErrc::peer_lost);
}

TEST_CASE("the deadline holds over real clocks, and abort from another thread ends a run") {
  TcpFleet fleet(2, {});
  Collective connects(fleet, case_of(algorithms::ring, 100, 3));  // opens the links, which may take longer than the
                                                                  // timeout below
  REQUIRE(connects.run());
  auto c = case_of(algorithms::ring, 100);
  c.timeout = 50ms;
  Collective lonely(fleet, c);
  lonely.start(0);
  REQUIRE(lonely.finish());
  CHECK(lonely.result(0).status.error().code == EngineErrc::deadline_exceeded);

  Collective unwanted(fleet, case_of(algorithms::ring, 100, 2));
  unwanted.start(1);
  fleet.plane(1).abort(2, Error(EngineErrc::aborted, "changed my mind"));
  REQUIRE(unwanted.finish());
  CHECK(mentions(unwanted.result(1).status.error().detail, "changed my mind"));
}

TEST_CASE("a data plane that is destroyed ends its runs, and its peers' runs") {
  std::optional<Collective> collective;
  {
    TcpFleet fleet(2, {});
    Collective connects(fleet, case_of(algorithms::ring, 100));
    REQUIRE(connects.run());
    collective.emplace(fleet, case_of(algorithms::ring, 100, 2));
    collective->start(0);
  }
  REQUIRE(collective->has_ended(0));
  CHECK(mentions(collective->result(0).status.error().detail, "w0 stops"));
}

TEST_CASE("traffic is counted per peer") {
  TcpFleet fleet(2, {});
  // Messages too large to share a connection: with smaller ones the run may end before the second connection exists.
  Collective collective(fleet, case_of(algorithms::ring, 100000));
  REQUIRE(collective.run());
  auto const traffic = fleet.plane(0).traffic();
  REQUIRE(traffic.size() == 1);
  CHECK(traffic[0].worker == "w1");
  CHECK(traffic[0].sent_bytes == 400000);
  CHECK(traffic[0].received_bytes == 400000);
  CHECK(traffic[0].connections == 2);
  CHECK(collective.result(0).statistics.bytes_sent == 400000);
  CHECK(collective.result(0).statistics.bytes_received == 400000);
  CHECK(collective.result(0).statistics.steps == 4);
}

TEST_CASE("peers that are not reached, and peers that go, are counted") {
  TcpFleet fleet(2, {});
  auto const traffic = [&] {
    auto const all = fleet.plane(0).traffic();
    REQUIRE(all.size() == 1);
    return all[0];
  };
  Collective collective(fleet, case_of(algorithms::ring, 100));
  REQUIRE(collective.run());
  CHECK(traffic().dials == 1);
  CHECK(traffic().ends.closed + traffic().ends.unreachable + traffic().ends.refused + traffic().ends.malformed == 0);
  Collective lost(fleet, case_of(algorithms::ring, 100, 2));
  lost.spec(0).members[1].url = "http://127.0.0.1:1";
  lost.start(0);
  REQUIRE(lost.finish());
  CHECK(traffic().dials == 2);
  CHECK(traffic().ends.unreachable == 1);
}

TEST_CASE("a peer that is asked for a sign of life answers, and the time that took is kept") {
  TcpFleet fleet(2, {});
  Collective connects(fleet, case_of(algorithms::ring, 100));
  REQUIRE(connects.run());
  Collective waiting(fleet, case_of(algorithms::ring, 100, 2));
  waiting.start(0);
  auto const until = std::chrono::steady_clock::now() + 10s;
  auto const last = [&] { return fleet.plane(0).traffic().at(0).last_round_trip_seconds; };
  while (last() == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK(last() > 0);
  waiting.start(1);
  REQUIRE(waiting.finish());
  CHECK(fleet.plane(0).traffic().at(0).round_trip_seconds >= last());
}

TEST_CASE("a reduction of pieces that are long against a look at the clock is timed, one of small pieces is not") {
  TcpFleet fleet(2, {});
  Collective small(fleet, case_of(algorithms::ring, 1000));
  REQUIRE(small.run());
  CHECK(small.result(0).statistics.reduced.bytes == 0);
  auto c = case_of(algorithms::ring, 1 << 20, 2);
  c.segment_bytes = 1 << 18;
  Collective large(fleet, c);
  REQUIRE(large.run());
  CHECK(large.result(0).statistics.reduced.bytes > 0);
  CHECK(large.result(0).statistics.reduced.bytes <= 2u << 20);  // a rank reduces half of the vector
  CHECK(large.result(0).statistics.reduced.seconds > 0);
}

TEST_CASE("members of a group reduce by calling, and a disagreement breaks the group") {
  TcpFleet fleet(3, {});
  engine::PlanCache cache(1 << 20);
  std::vector<std::thread> callers;
  std::atomic<int> right{0}, told{0}, broken{0};
  for (plan::Rank rank = 0; rank < 3; ++rank)
    callers.emplace_back([&, rank] {
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache);
      CallOptions options;
      options.algorithm = &algorithms::ring;
      for (int call = 0; call < 20; ++call) {
        std::vector<float> x(100, static_cast<float>(rank + 1)), y(100);
        auto const in_place = call % 2 == 1;
        auto const out = std::as_writable_bytes(std::span(in_place ? x : y));
        auto const result = group.all_reduce(std::as_bytes(std::span(x)), out, Dtype::f32, ReduceOp::sum, options);
        if (result.status.has_value() && (in_place ? x : y) == std::vector<float>(100, 6)) ++right;
      }
      std::vector<float> x(rank == 2 ? 50 : 100, 1);
      auto const bytes = std::as_writable_bytes(std::span(x));
      auto const odd = group.all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, options);
      if (odd.status.has_error() && odd.status.error().code == EngineErrc::plan_mismatch) ++told;
      auto const after = group.all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, options);
      if (after.status.has_error() && mentions(after.status.error().detail, "broken")) ++broken;
    });
  for (auto& caller : callers) caller.join();
  CHECK(right == 60);
  CHECK(told == 3);
  CHECK(broken == 3);
}

TEST_CASE("two members that repeat a call get the result each time, and are told when they differ at last") {
  for (auto const checksums : {links::ChecksumMode::off, links::ChecksumMode::on}) {
    DataPlaneOptions planes;
    planes.checksums = checksums;
    TcpFleet fleet(2, planes);
    engine::PlanCache cache(1 << 20);
    std::vector<std::thread> callers;
    std::atomic<int> right{0}, told{0};
    for (plan::Rank rank = 0; rank < 2; ++rank)
      callers.emplace_back([&, rank] {
        Group group(fleet.membership("g", rank), fleet.plane(rank), cache);
        CallOptions options;
        options.algorithm = &algorithms::mesh;
        for (int call = 0; call < 2000; ++call) {
          std::vector<float> x(call % 400 == 0 ? 1000 : 10, static_cast<float>(rank + call)), y(x.size());
          auto const result = group.all_reduce(std::as_bytes(std::span(x)), std::as_writable_bytes(std::span(y)),
                                               Dtype::f32, ReduceOp::sum, options);
          bool const is_right = y == std::vector<float>(x.size(), static_cast<float>(2 * call + 1));
          if (result.status.has_value() && is_right) ++right;
        }
        std::vector<float> x(10 + rank, 1);
        auto const bytes = std::as_writable_bytes(std::span(x));
        auto const odd = group.all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, options);
        if (odd.status.has_error() && odd.status.error().code == EngineErrc::plan_mismatch) ++told;
      });
    for (auto& caller : callers) caller.join();
    CHECK(right == 2 * 2000);
    CHECK(told == 2);
  }
}

TEST_CASE("callers of several groups on one plane are all served, whichever of them does the plane's work") {
  TcpFleet fleet(2, {});
  engine::PlanCache cache(1 << 20);
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (plan::Rank rank = 0; rank < 2; ++rank)
    for (std::string const name : {"a", "b", "c"})
      callers.emplace_back([&, rank, name] {
        Group group(fleet.membership(name, rank), fleet.plane(rank), cache);
        CallOptions options;
        options.algorithm = &algorithms::mesh;
        for (int call = 0; call < 200; ++call) {
          std::vector<float> x(call % 50 == 0 ? 100'000 : 10, static_cast<float>(rank + 1)), y(x.size());
          auto const result = group.all_reduce(std::as_bytes(std::span(x)), std::as_writable_bytes(std::span(y)),
                                               Dtype::f32, ReduceOp::sum, options);
          if (result.status.has_value() && y == std::vector<float>(x.size(), 3)) ++right;
        }
      });
  for (auto& caller : callers) caller.join();
  CHECK(right == 2 * 3 * 200);
}

TEST_CASE("a rank that does not begin after all tells the others, whether they have begun or not") {
  TcpFleet fleet(3, {});
  Collective collective(fleet, case_of(algorithms::ring, 100));
  collective.start(0);
  fleet.plane(1).give_up(collective.spec(1), 1, Error(EngineErrc::aborted, "no memory here"));
  collective.start(2);
  REQUIRE(collective.finish());
  for (plan::Rank const rank : {0U, 2U}) {
    auto const& result = collective.result(rank);
    REQUIRE(result.status.has_error());
    CHECK(result.status.error().code == EngineErrc::aborted);
    CHECK(mentions(result.status.error().detail, "no memory here"));
    CHECK(result.culprits == std::vector<plan::Rank>{1});
  }
}
