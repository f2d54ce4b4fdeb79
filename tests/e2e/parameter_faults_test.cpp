// Clients push and pull without pause through workers that suffer one fault after another: a worker is killed or
// stopped, or its connections are cut, slow, half-open or truncated; or all workers or the coordinator are stopped. The
// values must equal the acknowledged pushes: none is lost, none counts twice. No reader sees less than was acknowledged
// before its request, unless the answer is marked.
//
//   CHORUS_FAULTS=100 CHORUS_SEED=1 build/release/tests/test_e2e_parameter_faults    docs/explanation/testing.md
//   CHORUS_SOAK_SECONDS=3600 build/release/tests/test_e2e_parameter_faults           as many as there is time for
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <thread>

#include "tests/e2e/fault.hpp"
#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t pushers_count = 3;
constexpr std::size_t few_elements = 30011;  // primes: no number of shards divides them
constexpr std::size_t many_elements = 4000037;
constexpr auto patience = 4s;  // of a client with a silent worker

// Element i counts the pushes of client i mod 3: integers below 2^24, which f32 holds exactly.
std::string push_of(std::size_t pusher, std::size_t elements) {
  Floats ones(elements);
  for (std::size_t i = pusher; i < elements; i += pushers_count) ones[i] = 1;
  return ParameterClient::bytes(ones);
}

// A client and its progress.
struct Pusher {
  Pusher(std::size_t i, std::size_t elements)
      : client("", "c" + std::to_string(i), patience), bytes(push_of(i, elements)) {}
  ParameterClient client;
  std::string const bytes;
  std::atomic<std::uint64_t> begun{0}, acknowledged{0};
  std::string last_refusal;
};

// The URLs of all workers through their proxies, in turn.
class Doors {
 public:
  explicit Doors(FaultFleet& fleet) {
    for (std::size_t i = 0; i < FaultFleet::workers_count; ++i)
      urls_.push_back("http://127.0.0.1:" + std::to_string(fleet.proxy(i).port()));
  }
  std::string const& next() { return urls_[next_++ % urls_.size()]; }

 private:
  std::vector<std::string> urls_;
  std::atomic<std::size_t> next_ = 0;
};

// Pushes until told to stop. Each push is repeated until it is acknowledged, through another worker each time. A push
// that fails for a minute ends the loop: it has begun, and is not acknowledged.
void push_on(Pusher& pusher, Doors& doors, std::atomic<bool> const& ends) {
  for (auto is_last = false; !is_last;) {
    is_last = ends;
    ++pusher.begun;
    auto const last_attempt = Clock::now() + 60s;
    for (auto status = 0; status != 200;) {
      if (Clock::now() > last_attempt) return;
      auto const& door = doors.next();
      pusher.client.ask(door);
      try {
        auto const answer = pusher.client.push("p", pusher.bytes);
        status = answer.status;
        if (status != 200) pusher.last_refusal = door + ": " + answer.body;
      } catch (std::runtime_error const& failure) { pusher.last_refusal = door + ": " + failure.what(); }
      if (status != 200) pause_briefly();
    }
    ++pusher.acknowledged;
  }
}

struct Seen {
  std::uint64_t pulls = 0;
  std::uint64_t wrong = 0;
  std::string first_wrong;
};

// Checks the bounds of each pulled value: at least the pushes acknowledged before the request, at most the pushes begun
// before the answer.
void pull_on(std::vector<std::unique_ptr<Pusher>> const& pushers, std::size_t elements, Doors& doors,
             std::atomic<bool> const& ends, Seen& seen) {
  ParameterClient client("", "reader", patience);
  while (!ends) {
    std::array<std::uint64_t, pushers_count> least{}, most{};
    for (std::size_t i = 0; i < pushers_count; ++i) least[i] = pushers[i]->acknowledged;
    client.ask(doors.next());
    Answer answer;
    try {
      answer = client.pull("p");
    } catch (std::runtime_error const&) {}  // no answer
    // An owner that does not know whether its lease still holds marks its answers.
    if (answer.status != 200 || !answer.header("Parameter-Unconfirmed").empty()) {
      pause_briefly();
      continue;
    }
    for (std::size_t i = 0; i < pushers_count; ++i) most[i] = pushers[i]->begun;
    ++seen.pulls;
    auto const values = ParameterClient::values<float>(answer.body);
    bool is_right = values.size() == elements;
    for (std::size_t i = 0; is_right && i < elements; ++i) {
      auto const count = static_cast<double>(values[i]);
      is_right = count >= static_cast<double>(least[i % pushers_count]) &&
                 count <= static_cast<double>(most[i % pushers_count]);
      if (!is_right)
        seen.first_wrong = "element " + std::to_string(i) + " is " + std::to_string(count) + ", expected " +
                           std::to_string(least[i % pushers_count]) + " to " + std::to_string(most[i % pushers_count]);
    }
    if (!is_right) ++seen.wrong;
  }
}

// Clients of one parameter, "p", with three shards of two copies each.
class Clients {
 public:
  // `wishes`: end of the request that creates the parameter.
  Clients(FaultFleet& fleet, std::size_t elements, std::string const& wishes = "")
      : fleet_(fleet), elements_(elements), doors_(fleet) {
    auto const made =
        fleet.coordinator().put("/v1/parameters/p", R"({"group":"g","shape":[)" + std::to_string(elements) +
                                                        R"(],"replicas":2,"shards":3)" + wishes + "}");
    REQUIRE_MESSAGE(made.status == 201, made.body);
    for (std::size_t i = 0; i < pushers_count; ++i) pushers_.push_back(std::make_unique<Pusher>(i, elements));
  }

  // Pushes and pulls while the workers suffer `hit`, and then compares the acknowledged pushes with the values. Returns
  // the number of pulls, and the milliseconds until all copies existed again.
  template <class Hit>
  std::pair<std::uint64_t, double> survive(Hit const& hit) {
    fleet_.expect_health();
    std::atomic<bool> ends = false;
    Seen seen;
    std::vector<std::thread> clients;
    for (auto const& pusher : pushers_) clients.emplace_back([&] { push_on(*pusher, doors_, ends); });
    clients.emplace_back([&] { pull_on(pushers_, elements_, doors_, ends, seen); });
    hit();
    auto const ended = Clock::now();
    auto const stands = fleet_.stands_again() && eventually([&] { return is_ready(); }, 30s);
    auto const well = std::chrono::duration<double, std::milli>(Clock::now() - ended).count();
    ends = true;
    for (auto& client : clients) client.join();
    REQUIRE_MESSAGE(stands, fleet_.coordinator().get("/v1/parameters/p").body);
    for (auto const& pusher : pushers_) REQUIRE_MESSAGE(pusher->acknowledged == pusher->begun, pusher->last_refusal);
    INFO(seen.first_wrong);
    CHECK(seen.wrong == 0);
    auto const right = expected();
    for (std::size_t worker = 0; worker < FaultFleet::workers_count; ++worker) {
      auto const answer = ParameterClient(fleet_.worker(worker).url, "judge").pull("p");
      REQUIRE_MESSAGE(answer.status == 200, answer.body);
      CHECK(ParameterClient::values<float>(answer.body) == right);
    }
    return {seen.pulls, well};
  }
  [[nodiscard]] std::uint64_t acknowledged() const {
    std::uint64_t pushes = 0;
    for (auto const& pusher : pushers_) pushes += pusher->acknowledged;
    return pushes;
  }

 private:
  [[nodiscard]] bool is_ready() { return fleet_.coordinator().get("/v1/parameters/p").json().at("state") == "ready"; }
  [[nodiscard]] Floats expected() const {
    Floats values(elements_);
    for (std::size_t i = 0; i < elements_; ++i)
      values[i] = static_cast<float>(pushers_[i % pushers_count]->acknowledged);
    return values;
  }

  FaultFleet& fleet_;
  std::size_t const elements_;
  Doors doors_;
  std::vector<std::unique_ptr<Pusher>> pushers_;
};

constexpr std::array harms{
    Harm::delay,          Harm::cut, Harm::deaf, Harm::mute, Harm::silent, Harm::truncate, Harm::corrupt_message,
    Harm::corrupt_message};

// A fault of one worker, or of all at once, shorter or longer than a lease. A fault of all workers may be longer than
// four leases.
struct Hit {
  Hit(std::mt19937_64& random, bool is_of_all)
      : fault(is_of_all ? draw_fault_of_all(random) : draw_fault(random, harms)),
        moment(random() % 50000),
        length(random() % (is_of_all ? 5000000 : 1500000)) {}
  void operator()(FaultFleet& fleet) const {
    // The moments vary; this is not synchronisation.
    std::this_thread::sleep_until(Clock::now() + moment);
    begin(fault, fleet);
    std::this_thread::sleep_until(Clock::now() + length);
    end(fault, fleet);
  }
  [[nodiscard]] std::string text() const {
    return to_string(fault) + " of w" + std::to_string(fault.victim) + " after " + std::to_string(moment.count()) +
           " us, for " + std::to_string(length.count()) + " us";
  }
  Fault const fault;
  std::chrono::microseconds const moment, length;
};

// Disturbs the disks of the workers' logs, one after another. Every third victim is killed before its disk is repaired.
template <class Spoil, class Mend>
void survive_disks(FaultFleet::Setup setup, std::string const& state, Spoil const& spoil, Mend const& mend) {
  std::mt19937_64 random(number_from_environment("CHORUS_SEED", 1));
  auto const faults = number_from_environment("CHORUS_FAULTS", 6);
  setup.seed = random();
  FaultFleet fleet(std::move(setup));
  Clients clients(fleet, few_elements, R"(,"durability":"log")");
  std::uint64_t pulls = 0;
  for (std::uint64_t n = 0; n < faults; ++n) {
    Fault fault;
    fault.victim = random() % FaultFleet::workers_count;
    auto const length = std::chrono::microseconds(random() % 3000000);
    bool const is_killed = n % 3 == 2;
    INFO("fault " << n << ": the disk of w" << fault.victim << " is " << state << " for " << length.count() << " us"
                  << (is_killed ? ", and the worker is killed" : ""));
    auto const hit = [&] {
      spoil(fleet, fault.victim);
      std::this_thread::sleep_until(Clock::now() + length);
      if (is_killed) begin(fault, fleet);
      mend(fleet, fault.victim);
      if (is_killed) end(fault, fleet);
    };
    pulls += clients.survive(hit).first;
  }
  std::cout << faults << " " << state << " disks under " << clients.acknowledged() << " acknowledged pushes and "
            << pulls << " pulls" << std::endl;
}

}  // namespace

TEST_CASE("under faults of workers and connections each acknowledged push counts once, and no reader sees less") {
  auto const seed = number_from_environment("CHORUS_SEED", 1);
  auto const faults = number_from_environment("CHORUS_FAULTS", 16);
  auto const soak = std::chrono::seconds(number_from_environment("CHORUS_SOAK_SECONDS", 0));
  auto const until = Clock::now() + soak;
  std::mt19937_64 random(seed);
  FaultFleet fleet({.seed = random()});
  Clients clients(fleet, few_elements);
  std::map<std::string, int> survived;
  std::vector<double> well_ms;
  std::uint64_t pulls = 0, n = 0;
  for (; soak > 0s ? Clock::now() < until : n < faults; ++n) {
    Hit const hit(random, n % 4 == 3);
    INFO("seed " << seed << ", fault " << n << ": " << hit.text());
    auto const [seen_pulls, well] = clients.survive([&] { hit(fleet); });
    pulls += seen_pulls;
    well_ms.push_back(well);
    ++survived[to_string(hit.fault)];
  }
  std::ranges::sort(well_ms);
  std::cout << n << " faults under " << clients.acknowledged()
            << " acknowledged pushes, each of which counted once, and " << pulls << " pulls, none of which was behind:";
  for (auto const& [name, count] : survived) std::cout << " " << name << " " << count;
  std::cout << "; ms from a fault's end until all copies stood again (min, median, max) "
            << std::lround(well_ms.front()) << ", " << std::lround(well_ms[well_ms.size() / 2]) << ", "
            << std::lround(well_ms.back()) << std::endl;
}

TEST_CASE("a parameter of many MiB survives the same faults") {
  std::mt19937_64 random(number_from_environment("CHORUS_SEED", 1));
  auto const faults = number_from_environment("CHORUS_FAULTS", 6);
  FaultFleet fleet({.seed = random()});
  Clients clients(fleet, many_elements);
  std::uint64_t pulls = 0;
  for (std::uint64_t n = 0; n < faults; ++n) {
    Hit const hit(random, n % 4 == 3);
    INFO("fault " << n << ": " << hit.text());
    pulls += clients.survive([&] { hit(fleet); }).first;
  }
  std::cout << faults << " faults under " << clients.acknowledged() << " acknowledged pushes of 16 MB and " << pulls
            << " pulls" << std::endl;
}

TEST_CASE("on disks of logs that hang, even while their worker is killed, each acknowledged push counts once") {
  if (under_sanitizer()) return;  // the preloaded library would come before the sanitizer
  survive_disks(
      {.hanging_disk_library = CHORUS_HANGING_DISK}, "hanging",
      [](FaultFleet& fleet, std::size_t victim) { fleet.disk(victim).hang(); },
      [](FaultFleet& fleet, std::size_t victim) { fleet.disk(victim).answer(); });
}

TEST_CASE("on disks of logs that are full, even while their worker is killed, each acknowledged push counts once") {
  if (!SmallDisk().is_there()) return;
  survive_disks(
      {.has_small_disks = true}, "full", [](FaultFleet& fleet, std::size_t victim) { fleet.small_disk(victim).fill(); },
      [](FaultFleet& fleet, std::size_t victim) { fleet.small_disk(victim).make_room(); });
}
