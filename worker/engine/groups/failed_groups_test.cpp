// A group that fails because of something beside its calls, while a call is under way.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/testing/shared_members.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;
using chorus::testing::mentions;

namespace {

// What another thread does while a call is under way: a call checks its plan first.
std::function<void()> meanwhile;

Status check_meanwhile(plan::Spec const& spec) {
  std::thread(meanwhile).join();
  return algorithms::centralized.check(spec);
}

Status refuse_meanwhile(plan::Spec const&) {
  std::thread(meanwhile).join();
  return Error(PlanErrc::bad_parameter, "refused");
}

}  // namespace

TEST_CASE("a failure during a call that ends well, or is refused, ends the next call of the other member") {
  for (auto const check : {&check_meanwhile, &refuse_meanwhile}) {
    bool const ends_well = check == &check_meanwhile;
    CAPTURE(ends_well);
    TcpFleet fleet(2, {});
    PlanCache cache{1 << 20};
    memory::RegionRegistry regions;
    std::array<std::unique_ptr<memory::Arena>, 2> arenas;
    std::array<std::unique_ptr<Group>, 2> groups;
    for (plan::Rank rank = 0; rank < 2; ++rank) {
      arenas[rank] = large_arena();
      groups[rank] = std::make_unique<Group>(fleet.membership("g", rank), fleet.plane(rank), cache,
                                             GroupMemory{&algorithms::direct, arenas[rank].get(), &regions});
    }
    meanwhile = [&] { groups[0]->fail(EngineErrc::aborted, "a message was given up"); };
    auto watched = algorithms::centralized;
    watched.check = check;
    std::array<std::byte, 4> from{std::byte{7}}, to{};
    // The root sends a small vector in its first turn, and waits for nothing.
    auto const broadcast = [&](plan::Rank rank, plan::Algorithm const& algorithm) {
      CallOptions options;
      options.algorithm = &algorithm;
      options.timeout = 20s;
      options.in_place = true;
      auto const buffer = std::span(rank == 0 ? from : to);
      return groups[rank]->run(Op::broadcast, rank == 0 ? buffer : std::span<std::byte>(), buffer, Dtype::u8,
                               ReduceOp::sum, 4, options);
    };
    RunResult sent, received, next;
    on_threads(2, [&](plan::Rank rank) {
      (rank == 0 ? sent : received) = broadcast(rank, rank == 0 ? watched : algorithms::centralized);
      if (rank == 1 && received.status.has_value()) next = broadcast(rank, algorithms::centralized);
    });
    CHECK(sent.status.has_value() == ends_well);
    CHECK(received.status.has_value() == ends_well);
    CHECK(to == (ends_well ? from : std::array<std::byte, 4>{}));
    auto const& ended = ends_well ? next.status : received.status;
    REQUIRE(ended.has_error());
    CHECK(ended.error().code == EngineErrc::aborted);
    CHECK(mentions(ended.error().detail, "rank 0 (w0) reports: a message was given up"));
  }
}

TEST_CASE("a call does not take a peer that has come back for its former self, if the data thread had no turn since") {
  TcpFleet fleet(3, {});
  PlanCache cache{1 << 20};
  memory::RegionRegistry regions;
  auto const barrier = [&](std::string const& name, std::array<plan::Rank, 2> const& ranks, plan::Rank rank) {
    GroupMembership membership;
    membership.name = name;
    membership.rank = rank;
    for (plan::Rank r = 0; r < 2; ++r) {
      membership.members.push_back(fleet.peer(ranks[r]));
      membership.members.back().rank = r;
    }
    Group group(std::move(membership), fleet.plane(ranks[rank]), cache, GroupMemory{&algorithms::direct, {}, &regions});
    CallOptions options;
    options.algorithm = &algorithms::dissemination;
    options.timeout = 20s;
    return group.barrier(options).status;
  };
  auto& plane = fleet.plane(0);
  plane.fence("w1", 7);  // its former incarnation
  std::promise<void> is_fenced;
  plane.ask_progress({}, [&](auto const&) { is_fenced.set_value(); });
  is_fenced.get_future().wait();
  std::array<Status, 2> others{ok(), ok()};
  std::thread other([&] { others[0] = barrier("g", {0, 2}, 1); });
  std::atomic<bool> is_back{false};
  std::thread returned([&] {
    while (!is_back) std::this_thread::yield();
    others[1] = barrier("h", {0, 1}, 1);
  });
  // The data thread leaves the loop to this thread for a moment after a call.
  auto const before = barrier("g", {0, 2}, 0);
  plane.fence("w1", fleet.peer(1).incarnation);
  is_back = true;
  auto const after = barrier("h", {0, 1}, 0);
  other.join();
  returned.join();
  for (auto const& status : {before, after, others[0], others[1]}) {
    INFO((status.has_error() ? status.error().detail : ""));
    CHECK(status.has_value());
  }
}
