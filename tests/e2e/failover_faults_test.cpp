// Faults of coordinators, of etcd and of the connections between them, during launches: each accepted launch is done
// once, and the cluster goes on from its state.
//
//   CHORUS_FAULTS=500 CHORUS_SEED=1 build/release/tests/test_e2e_failover_faults    docs/explanation/testing.md
#include <doctest/doctest.h>
#include <signal.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "tests/e2e/coordinator_fleet.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

// Launches without using the answer: the coordinator may end meanwhile.
std::thread launch_with(Service const& leader, std::string const& key) {
  return std::thread([&leader, key] {
    try {
      static_cast<void>(leader.post("/v1/collectives?wait=20s", R"({"group":"g","tensor":"x","timeout_ms":10000})",
                                    {{"Idempotency-Key", key}}));
    } catch (std::runtime_error const&) {  // the answer is lost
    }
  });
}

Service& next_leader(CoordinatorFleet& fleet, Service const* other_than = nullptr) {
  Service* next = nullptr;
  REQUIRE(eventually([&] { return (next = fleet.leader(other_than)) != nullptr; }, 60s));
  return *next;
}

void put_back(CoordinatorFleet& fleet) {
  for (std::uint64_t i = 0; i < 2; ++i)
    REQUIRE(fleet.workers[i]->put_tensor("x", "u64", std::vector<std::uint64_t>(1000, i + 1)).status / 100 == 2);
}

// Launches under `key`, or under a later key if a change of the leader interrupted it, and checks that the launch was
// done once.
void is_done_once(CoordinatorFleet& fleet, std::string key) {
  auto const succeeds = [&] {
    auto const* const leader = fleet.leader();
    return leader != nullptr && CoordinatorFleet::succeeds(*leader, key);
  };
  REQUIRE(eventually(succeeds, 60s));
  CHECK(fleet.holds(CoordinatorFleet::value_after(1)));
}

boost::json::array events_of(Service const& leader) {
  httplib::Client client(leader.url);
  auto const answer = client.Get("/v1/events?limit=1000", {{"Accept", "application/json"}});
  REQUIRE(answer);
  REQUIRE(answer->status == 200);
  return boost::json::parse(answer->body).at("items").as_array();
}

// Checks that the sequence numbers of events grow by one from event to event, through all leaders.
void check_events(Service const& leader) {
  std::int64_t last = 0;
  for (auto const& event : events_of(leader)) {
    auto const position = event.at("sequence").to_number<std::int64_t>();
    if (last != 0) CHECK(position == last + 1);
    last = position;
  }
}

enum class Kind : std::uint8_t {
  leader_killed,
  leader_told_to_end,
  leader_stopped,
  leader_without_etcd,
  leader_reset_by_etcd,
  leader_slow_to_etcd,
  workers_without_leader,
  standby_killed,
  worker_stopped,
  etcd_member_killed,
  etcd_without_quorum,
  etcd_stopped,
};
constexpr std::array names{"leader killed",          "leader told to end",   "leader stopped",
                           "leader without etcd",    "leader reset by etcd", "leader slow to etcd",
                           "workers without leader", "standby killed",       "worker stopped",
                           "etcd member killed",     "etcd without quorum",  "etcd stopped"};

// A fault of the fleet while `leader` leads.
class Fault {
 public:
  Fault(CoordinatorFleet& fleet, Service const& leader, std::mt19937_64& random)
      : kind_(static_cast<Kind>(random() % names.size())),
        fleet_(fleet),
        leader_(fleet.number_of(&leader)),
        standby_((leader_ + 1 + random() % (fleet.size() - 1)) % fleet.size()),
        member_(random() % fleet.etcd.size()),
        worker_(random() % 2),
        // A worker that is silent for longer than its lease is lost; other tests cover that.
        length_(std::chrono::milliseconds(random() % (kind_ == Kind::worker_stopped ? 2000 : 5000))) {}

  [[nodiscard]] std::string name() const { return names.at(static_cast<std::size_t>(kind_)); }

  // Runs the fault from its beginning to its end.
  void happen() {
    begin();
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + length_);  // the length of the fault varies
    end();
  }

 private:
  void begin() {
    switch (kind_) {
      case Kind::leader_killed:
        return fleet_.at(leader_).process.signal(SIGKILL);
      case Kind::leader_told_to_end:
        return fleet_.at(leader_).process.signal(SIGTERM);
      case Kind::leader_stopped:
        return fleet_.at(leader_).process.signal(SIGSTOP);
      case Kind::leader_without_etcd:
        return fleet_.harm_way_to_etcd(leader_, Harm::silent);
      case Kind::leader_reset_by_etcd:
        return fleet_.harm_way_to_etcd(leader_, Harm::cut);
      case Kind::leader_slow_to_etcd:
        return fleet_.harm_way_to_etcd(leader_, Harm::delay);
      case Kind::workers_without_leader:
        return fleet_.harm_way_of_workers(leader_, Harm::silent);
      case Kind::standby_killed:
        return fleet_.at(standby_).process.signal(SIGKILL);
      case Kind::worker_stopped:
        return fleet_.workers[worker_]->process.signal(SIGSTOP);
      case Kind::etcd_member_killed:
        return fleet_.etcd.kill(member_);
      case Kind::etcd_without_quorum:
        fleet_.etcd.kill(member_);
        return fleet_.etcd.kill((member_ + 1) % fleet_.etcd.size());
      case Kind::etcd_stopped:
        for (std::size_t i = 0; i < fleet_.etcd.size(); ++i) fleet_.etcd.signal(i, SIGSTOP);
    }
  }
  void end() {
    switch (kind_) {
      case Kind::leader_stopped:
        return fleet_.at(leader_).process.signal(SIGCONT);
      case Kind::leader_without_etcd:
      case Kind::leader_reset_by_etcd:
      case Kind::leader_slow_to_etcd:
        return fleet_.harm_way_to_etcd(leader_, Harm::none);
      case Kind::workers_without_leader:
        return fleet_.harm_way_of_workers(leader_, Harm::none);
      case Kind::worker_stopped:
        return fleet_.workers[worker_]->process.signal(SIGCONT);
      case Kind::etcd_without_quorum:
        fleet_.etcd.start((member_ + 1) % fleet_.etcd.size());
        return fleet_.etcd.start(member_);
      case Kind::etcd_member_killed:
        return fleet_.etcd.start(member_);
      case Kind::etcd_stopped:
        for (std::size_t i = 0; i < fleet_.etcd.size(); ++i) fleet_.etcd.signal(i, SIGCONT);
        return;
      case Kind::leader_killed:
      case Kind::leader_told_to_end:
      case Kind::standby_killed:
        return;  // end() starts the coordinator again
    }
  }

  Kind const kind_;
  CoordinatorFleet& fleet_;
  std::size_t const leader_, standby_, member_, worker_;
  std::chrono::milliseconds const length_;
};

}  // namespace

TEST_CASE("a leader that is killed at any point of a launch: the next leader finishes the launch or knows its end") {
  if (is_etcd_missing()) return;
  constexpr std::size_t crashing = 0, other = 1;
  CoordinatorFleet fleet({.coordinators = 2});
  ScratchDirectory const here;
  auto const armed = here / "armed";
  auto const hand_over_to = [&](std::size_t next, std::size_t former) {
    fleet.at(former).process.signal(SIGTERM);
    REQUIRE(eventually([&] { return fleet.is_ready(next); }, 20s));
    fleet.at(former).process.wait();
  };
  std::uint64_t point = 1;
  for (bool has_died = true; has_died; ++point) {
    CAPTURE(point);
    if (fleet.is_ready(crashing)) hand_over_to(other, crashing);
    fleet.start_crashing(crashing, point, armed);
    hand_over_to(crashing, other);
    fleet.start(other);
    put_back(fleet);
    write_file(armed, "");
    auto const key = "point-" + std::to_string(point);
    launch_with(fleet.at(crashing), key).join();
    std::filesystem::remove(armed);
    has_died = !fleet.is_ready(crashing);
    is_done_once(fleet, key);
    CHECK(next_leader(fleet).get("/v1/groups/g").json().at("epoch") == 1);
  }
  std::cout << "killed at each of " << point - 2 << " points" << std::endl;
  CHECK(point > 8);
  check_events(next_leader(fleet));
}

TEST_CASE("under faults of coordinators, etcd and their connections each launch is done once") {
  if (is_etcd_missing()) return;
  auto const seed = number_from_environment("CHORUS_SEED", 1);
  auto const faults = number_from_environment("CHORUS_FAULTS", 12);
  std::mt19937_64 random(seed);
  CoordinatorFleet fleet({.etcds = 3, .coordinators = 3, .are_proxied = true});
  std::map<std::string, int> survived;
  for (std::uint64_t n = 0; n < faults; ++n) {
    auto& leader = next_leader(fleet);
    put_back(fleet);
    Fault fault(fleet, leader, random);
    INFO("seed " << seed << ", fault " << n << ": " << fault.name());
    auto const key = "k" + std::to_string(n);
    auto launch = launch_with(leader, key);
    fault.happen();
    launch.join();
    for (std::size_t i = 0; i < fleet.size(); ++i)
      if (fleet.has_ended(i)) fleet.start(i);
    is_done_once(fleet, key);
    CHECK(eventually([&] { return fleet.leaders() == 1; }, 60s));
    auto& last = next_leader(fleet);
    CHECK(last.get("/v1/groups/g").json().at("epoch") == 1);
    CHECK(last.get("/v1/groups/g").json().at("state") == "ready");
    check_events(last);
    ++survived[fault.name()];
  }
  std::cout << faults << " faults, under each of which a launch was done once:";
  for (auto const& [name, count] : survived) std::cout << ' ' << name << ' ' << count << ';';
  std::cout << std::endl;
}

TEST_CASE("wall clocks that jump by a day forwards and backwards change nothing") {
  if (is_etcd_missing() || under_sanitizer()) return;  // the preloaded library would come before the sanitizer
  ScratchDirectory const here;
  auto const offset = here / "offset";
  CoordinatorFleet fleet(
      {.coordinators = 2,
       .command = {"/usr/bin/env", "LD_PRELOAD=" CHORUS_JUMPING_CLOCK, "CHORUS_CLOCK_OFFSET=" + offset}});
  auto const* const leader = fleet.leader();
  // Returns the day on which a group is made now, from the coordinator's event.
  auto day = [&, groups = 0]() mutable {
    REQUIRE(leader->put("/v1/groups/day-" + std::to_string(groups++), R"({"workers":["w0"]})").status == 201);
    return std::string(events_of(*leader).back().at("at").as_string()).substr(0, 10);
  };
  std::uint64_t launches = 0;
  CHECK(CoordinatorFleet::launches(leader));
  auto const today = day();
  for (auto const* seconds : {"86400", "-86400", "0"}) {
    write_file(offset, seconds);
    CHECK(CoordinatorFleet::launches(leader));
    ++launches;
    CHECK((day() == today) == (std::string(seconds) == "0"));
    CHECK(fleet.holds(CoordinatorFleet::value_after(launches + 1)));
  }
  CHECK(fleet.leader() == leader);
  CHECK(leader->get("/v1/groups/g").json().at("epoch") == 1);
  check_events(*leader);
}

TEST_CASE("two clusters in one etcd do not see each other") {
  if (is_etcd_missing()) return;
  Etcd const etcd;
  auto const coordinator = [&](std::string const& cluster) {
    return Service(cluster, {binary("chorus-coordinator"), "--port", "0", "--etcd", etcd.urls(), "--cluster", cluster,
                             "--log-level", "error"});
  };
  Service const a = coordinator("a"), b = coordinator("ab");
  for (auto const* one : {&a, &b}) REQUIRE(eventually([&] { return one->is_ready(); }));
  REQUIRE(a.put("/v1/groups/g", R"({"size":0})").status / 100 == 4);
  Service const worker(
      "w0", {binary("chorus-worker"), "--port", "0", "--coordinator", a.url, "--id", "w0", "--log-level", "error"});
  REQUIRE(eventually([&] { return worker.get("/readyz").status == 200; }));
  REQUIRE(a.put("/v1/groups/g", R"({"size":1})").status == 201);
  CHECK(b.get("/v1/groups/g").status == 404);
  CHECK(b.get("/v1/workers/w0").status == 404);
  CHECK(a.get("/v1/groups/g").status == 200);
}
