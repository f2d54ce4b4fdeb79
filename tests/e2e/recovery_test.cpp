// Members of a group that may shrink are killed and stopped during members' calls. The survivors learn the name of the
// lost member, go on without it, and take in its successor.
//
//   CHORUS_KILLS=100 build/release/tests/test_e2e_recovery    measures: docs/explanation/testing.md
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr char const* call = R"({"tensor":"x","output":"y","timeout_ms":20000})";

int wanted(char const* variable, std::uint64_t otherwise) {
  return static_cast<int>(std::clamp<std::uint64_t>(number_from_environment(variable, otherwise), 1, 1000));
}

// w<i> contributes 2^i, so that the sum tells which members took part.
std::uint64_t share_of(std::string const& id) { return std::uint64_t{1} << (id.back() - '0'); }

void put_share(Service const& worker) {
  REQUIRE(worker.put_tensor("x", "u64", std::vector<std::uint64_t>(512, share_of(worker.id))).status / 100 == 2);
}

std::uint32_t epoch_of(Cluster& cluster) {
  return static_cast<std::uint32_t>(cluster.coordinator.get("/v1/groups/g").json().at("epoch").as_int64());
}

bool stands(Cluster& cluster, std::size_t members) {
  auto const group = cluster.coordinator.get("/v1/groups/g").json();
  return group.at("state") == "ready" && group.at("members").as_array().size() == members;
}

// Observations of one survivor after the fault. A survivor may have been between two calls while the others went on
// without the victim. Its next call then belongs to the later epoch, and `first_code` is empty.
struct Seen {
  std::string first_code;
  std::string first_body;
  Clock::time_point told, well;
  std::vector<std::uint64_t> result;
};

// Repeats calls until one succeeds in an epoch later than `old`.
void call_until_well(Service const& worker, std::uint32_t old, Seen& seen) {
  for (auto const until = Clock::now() + 60s; Clock::now() < until;) {
    auto const answer = worker.post("/v1/groups/g/all_reduce", call);
    if (answer.status == 200 && answer.json().at("epoch").as_int64() > old) {
      seen.well = Clock::now();
      if (seen.first_code.empty()) seen.told = seen.well;
      seen.result = worker.get_tensor<std::uint64_t>("y");
      return;
    }
    if (answer.status != 200 && seen.first_code.empty()) {
      seen.told = Clock::now();
      seen.first_code = answer.code();
      seen.first_body = answer.body;
    }
  }
}

void call_until_gone(Service const& worker) {
  try {
    while (worker.post("/v1/groups/g/all_reduce", call).status == 200) {}
  } catch (std::runtime_error const&) {}  // no answer: the worker has ended
}

struct Times {
  std::vector<double> told_ms, well_ms;
};

void add(Times& times, std::vector<Seen> const& seen, Clock::time_point fault) {
  auto const ms = [fault](Clock::time_point t) { return std::chrono::duration<double, std::milli>(t - fault).count(); };
  double told = 0, well = 0;
  for (auto const& one : seen) {
    told = std::max(told, ms(one.told));
    well = std::max(well, ms(one.well));
  }
  times.told_ms.push_back(told);
  times.well_ms.push_back(well);
}

std::string spread(std::vector<double> values) {
  std::ranges::sort(values);
  auto const text = [](double value) { return std::to_string(value).substr(0, std::to_string(value).find('.') + 2); };
  return text(values.front()) + ", " + text(values[values.size() / 2]) + ", " + text(values.back());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print(char const* fault, Times const& times) {
  std::cout << times.told_ms.size() << " workers " << fault
            << "; ms until the last survivor was told (min, median, max) " << spread(times.told_ms)
            << "; until it had the next result " << spread(times.well_ms) << std::endl;
}

// Takes one member from the group of four during calls. Returns what the other three saw.
template <class Fault>
std::vector<Seen> lose_one(Cluster& cluster, std::vector<Service*> const& members, std::size_t victim, Fault fault,
                           Clock::time_point& when) {
  auto const old = epoch_of(cluster);
  auto const before = members[victim]->tensor_version("y");
  std::vector<Seen> seen(members.size() - 1);
  std::vector<std::thread> calls;
  std::size_t next = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == victim)
      calls.emplace_back([&, i] { call_until_gone(*members[i]); });
    else
      calls.emplace_back([&, i, at = next++] { call_until_well(*members[i], old, seen[at]); });
  }
  CHECK(eventually([&] { return members[victim]->tensor_version("y") >= before + 5; }));
  when = Clock::now();
  fault(*members[victim]);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (i != victim) calls[i].join();
  members[victim]->process.signal(SIGKILL);
  calls[victim].join();
  return seen;
}

void check(std::vector<Seen> const& seen, std::string const& victim) {
  for (auto const& one : seen) {
    INFO(one.first_body);
    if (!one.first_code.empty()) {
      CHECK(one.first_code == "peer_lost");
      CHECK(one.first_body.find(victim) != std::string::npos);
    }
    CHECK(one.result == std::vector<std::uint64_t>(512, 15 - share_of(victim)));
  }
}

Times lose_many(int times, char const* what, std::vector<std::string> coordinator_flags, int signal) {
  Cluster cluster(4, {}, std::move(coordinator_flags));
  std::vector<Service*> members;
  for (std::size_t i = 0; i < 4; ++i) members.push_back(&cluster.worker(i));
  for (auto* member : members) put_share(*member);
  REQUIRE(cluster.coordinator
              .put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"],"on_failure":"shrink","min_ranks":2})")
              .status == 201);
  Times measured;
  std::ptrdiff_t told = 0;
  for (int round = 0; round < times; ++round) {
    auto const victim = static_cast<std::size_t>(round) % members.size();
    auto const id = members[victim]->id;
    Clock::time_point when;
    auto const seen = lose_one(
        cluster, members, victim, [signal](Service& worker) { worker.process.signal(signal); }, when);
    check(seen, id);
    told += std::ranges::count_if(seen, [](Seen const& one) { return !one.first_code.empty(); });
    add(measured, seen, when);
    members[victim] = &cluster.add_worker(id, "host=h0");
    put_share(*members[victim]);
    REQUIRE(eventually([&] { return stands(cluster, 4); }));
  }
  CHECK(told >= 2 * times);  // at least two of the three survivors of each fault
  print(what, measured);
  return measured;
}

}  // namespace

TEST_CASE("the survivors of a killed member learn its name, and get the next result without it at once") {
  auto const times = lose_many(wanted("CHORUS_KILLS", 6), "killed", {}, SIGKILL);
  CHECK(median(times.told_ms) < 100);
  CHECK(median(times.well_ms) < 200);
}

TEST_CASE("a stopped member leaves the group when its lease has ended") {
  auto const times = lose_many(wanted("CHORUS_STOPS", 2), "stopped", {"--lease-ms", "1000"}, SIGSTOP);
  // A worker renews its lease every third of its length, and the coordinator checks leases ten times as often as their
  // length.
  CHECK(median(times.told_ms) < 1500);
  CHECK(median(times.well_ms) < 1700);
}
