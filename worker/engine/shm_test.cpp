// The collective suite through shared memory, and how links come to use it.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "collectives/algorithms/catalogue.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/loop/shm_links.hpp"
#include "worker/engine/testing/cases/suite.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

std::unique_ptr<Fleet> in_arenas(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, DataPlaneOptions{.partials_bytes = 0}, make_arenas(ranks));
}

std::unique_ptr<Fleet> outside(std::uint32_t ranks) {
  return std::make_unique<TcpFleet>(ranks, DataPlaneOptions{.partials_bytes = 0}, make_arenas(ranks),
                                    Tensors::elsewhere);
}

DataPlaneOptions that_spin(std::chrono::microseconds time) {
  DataPlaneOptions options;
  options.spin = time;
  return options;
}

Case case_of(plan::Algorithm const& algorithm, std::uint64_t elements, std::uint64_t run = 1) {
  Case c;
  c.algorithm = &algorithm;
  c.elements = elements;
  c.run = run;
  return c;
}

void check_run(Fleet& fleet, Case const& c) {
  Collective collective(fleet, c);
  REQUIRE(collective.run());
  auto const wrong = collective.wrong();
  CHECK_MESSAGE(wrong.empty(), wrong);
}

PeerTraffic only_traffic(TcpFleet& fleet, plan::Rank rank) {
  auto const traffic = fleet.plane(rank).traffic();
  REQUIRE(traffic.size() == 1);
  return traffic[0];
}

}  // namespace

TEST_CASE("through shared memory, every algorithm is exact for every group, count, segment size and operation") {
  check_every_shape(in_arenas, Depth::few);
}

TEST_CASE("through shared memory, tensors elsewhere are copied once and exact too") {
  check_every_shape(outside, Depth::few);
}

TEST_CASE("through shared memory, a hundred runs in a row use the same links, however long the threads poll") {
  check_hundred_in_a_row(in_arenas);
  check_hundred_in_a_row(outside);
  for (auto const spin : {0us, 1us, 300us})
    check_hundred_in_a_row(
        [spin](std::uint32_t ranks) { return std::make_unique<TcpFleet>(ranks, that_spin(spin), make_arenas(ranks)); });
}

TEST_CASE("through shared memory, several runs at once share the links") {
  check_several_at_once(in_arenas);
  check_several_at_once(outside);
}

TEST_CASE("through shared memory, ranks may start in any order, long after the others") {
  check_late_starters(in_arenas);
  check_late_starters(outside);
}

TEST_CASE("through shared memory, a vector much larger than the memory that copies go through") {
  for (auto const& make : {in_arenas, outside}) {
    auto const fleet = make(3);
    std::uint64_t run = 0;
    for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
      auto c = case_of(*algorithm, 1000011, ++run);
      c.in_place = run % 2 == 0;
      if (run % 3 == 0) c.segment_bytes = 5u << 20;
      check_run(*fleet, c);
    }
  }
}

TEST_CASE("the traffic says that it goes through shared memory") {
  TcpFleet fleet(2, {}, make_arenas(2));
  check_run(fleet, case_of(algorithms::ring, 1000));
  auto const traffic = only_traffic(fleet, 0);
  CHECK(traffic.link == "shm");
  CHECK(traffic.why_not_shm == "");
  CHECK(traffic.sent_bytes == 4000);
  CHECK(traffic.received_bytes == 4000);
  CHECK(traffic.connections == 2);
}

TEST_CASE("workers that do not find each other's memory use TCP and say why") {
  auto const arenas = make_arenas(2);
  arenas[0]->mapping().head().nonce[0] ^= 1;  // like a worker of the same name in another container
  shm_unlink(("/" + memory::file_name(arenas[1]->ticket())).c_str());
  TcpFleet fleet(2, {}, arenas);
  for (std::uint64_t run : {1, 2}) check_run(fleet, case_of(algorithms::ring, 30000, run));
  for (plan::Rank rank : {0u, 1u}) {
    auto const traffic = only_traffic(fleet, rank);
    CHECK(traffic.link == "tcp");
    CHECK_MESSAGE(mentions(traffic.why_not_shm, "/dev/shm/chorus-"), traffic.why_not_shm);
  }
}

TEST_CASE("a worker that declines for lack of descriptors is asked again, and one that cannot find the memory is not") {
  auto const arenas = make_arenas(2);
  TrafficBook dialers, acceptors;
  ShmLinks dialer(arenas[0].get(), dialers), acceptor(arenas[1].get(), acceptors);
  Peer const peer{1, "w1", 7, ""};
  auto const is_accepted = [&](bool has_descriptors) {
    auto const offer = dialer.offer(peer);
    REQUIRE(offer.has_value());
    links::Introduction const introduction{.worker = "w0", .incarnation = 1, .shared_memory = offer->described()};
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit const few{has_descriptors ? before.rlim_cur : 0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    auto const accepted = acceptor.accept(introduction);
    setrlimit(RLIMIT_NOFILE, &before);
    links::Answer answer;
    answer.shared_memory = accepted.value().answer;
    return dialer.is_accepted(peer, links::switch_protocols({}, answer).fields).value();
  };
  CHECK_FALSE(is_accepted(false));
  CHECK(is_accepted(true));
  arenas[0]->mapping().head().nonce[0] ^= 1;  // like a worker of the same name in another container
  CHECK_FALSE(is_accepted(true));
  CHECK_FALSE(dialer.offer(peer).has_value());
  CHECK(dialer.offer({1, "w1", 8, ""}).has_value());
}

TEST_CASE("a worker without shared memory is talked to over TCP") {
  auto arenas = make_arenas(2);
  arenas[1] = nullptr;
  TcpFleet fleet(2, {}, arenas);
  check_run(fleet, case_of(algorithms::ring, 30000));
  CHECK(only_traffic(fleet, 0).link == "tcp");
  CHECK(mentions(only_traffic(fleet, 0).why_not_shm, "the peer does not share memory"));
  CHECK(only_traffic(fleet, 1).why_not_shm == "");
}

TEST_CASE("one direction may go through shared memory and the other not") {
  auto const arenas = make_arenas(2);
  arenas[0]->mapping().head().nonce[0] ^= 1;
  TcpFleet fleet(2, {}, arenas);
  check_run(fleet, case_of(algorithms::ring, 30000));
  CHECK(only_traffic(fleet, 1).link == "shm and tcp");
}

TEST_CASE("an arena that is too small for a link leaves TCP") {
  TcpFleet fleet(2, {}, make_arenas(2, 4u << 20), Tensors::elsewhere);
  std::vector<Buffer> all;
  for (std::uint64_t const bytes : {2040000, 1000000})
    all.push_back(allocate_in(std::shared_ptr<memory::Arena>(std::shared_ptr<void>(), &fleet.arena(0)), bytes));
  check_run(fleet, case_of(algorithms::ring, 30000));
  CHECK(only_traffic(fleet, 0).link == "shm and tcp");
  CHECK(mentions(only_traffic(fleet, 0).why_not_shm, "no shared memory here"));
}

TEST_CASE("links of a data plane that is destroyed end its peers' runs, and new ones work again") {
  auto const arenas = make_arenas(2);
  std::optional<Collective> collective;
  {
    TcpFleet fleet(2, {}, arenas);
    check_run(fleet, case_of(algorithms::ring, 100));
    collective.emplace(fleet, case_of(algorithms::ring, 3000, 2));
    collective->start(0);
  }
  REQUIRE(collective->has_ended(0));
  CHECK(mentions(collective->result(0).status.error().detail, "w0 stops"));
  TcpFleet fleet(2, {}, arenas);
  check_run(fleet, case_of(algorithms::ring, 100));
}

TEST_CASE("through shared memory, the deadline names the rank that never called") {
  TcpFleet fleet(2, {}, make_arenas(2));
  check_run(fleet, case_of(algorithms::ring, 100));  // opens the links, which may take longer than the timeout below
  auto c = case_of(algorithms::ring, 100000, 2);
  c.timeout = 50ms;
  Collective lonely(fleet, c);
  lonely.start(0);
  REQUIRE(lonely.finish());
  CHECK(lonely.result(0).status.error().code == EngineErrc::deadline_exceeded);
  CHECK(lonely.result(0).culprits == std::vector<plan::Rank>{1});
}

// The last segment is short enough to be copied into the ring. The segments before it are read in place, and may be
// overwritten only after that.
TEST_CASE("in place, the copied end of a vector does not stand for what is still being read before it") {
  auto const fleet = in_arenas(8);
  for (std::uint64_t run = 1; run <= 40; ++run) {
    auto c = case_of(algorithms::mesh, 100003, run);
    c.in_place = true;
    c.segment_bytes = 4096;
    check_run(*fleet, c);
  }
}
