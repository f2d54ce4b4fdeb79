// Clients push and pull without a pause through workers that are hit by one fault after the other: killed, stopped, or
// behind connections that are cut, slow, half-open or cut short. What each client was told is applied is held against
// what is there, exactly: each push once, none lost, none twice; and no reader ever sees less than was acknowledged
// before it asked.
//
//   CHORUS_FAULTS=100 CHORUS_SEED=1 build/release/tests/test_e2e_parameter_faults    docs/reliability.md
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
#include "tests/support/parameters.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t pushers_count = 3;
constexpr std::size_t elements = 30011;  // a prime: no number of shards divides it
constexpr auto patience = 4s;            // of a client with a worker that says nothing

// Element i counts the pushes of client i mod 3: whole numbers below 2^24, which f32 holds exactly.
std::string push_of(std::size_t pusher) {
  Floats ones(elements);
  for (std::size_t i = pusher; i < elements; i += pushers_count) ones[i] = 1;
  return ParameterClient::bytes(ones);
}

// A client and how far it is.
struct Pusher {
  explicit Pusher(std::size_t i) : client("", "c" + std::to_string(i), patience), bytes(push_of(i)) {}
  ParameterClient client;
  std::string const bytes;
  std::atomic<std::uint64_t> begun{0}, acknowledged{0};
};

// The URLs of all workers as others see them, the faults included; one after the other.
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

// Pushes until it is told to stop, each as often as it takes, through another worker each time. One that nobody takes
// for a minute ends it: the push has begun, and is not acknowledged.
void push_on(Pusher& pusher, Doors& doors, std::atomic<bool> const& ends) {
  for (auto is_last = false; !is_last;) {
    is_last = ends;
    ++pusher.begun;
    auto const last_attempt = Clock::now() + 60s;
    for (auto status = 0; status != 200;) {
      if (Clock::now() > last_attempt) return;
      pusher.client.ask(doors.next());
      try {
        status = pusher.client.push("p", pusher.bytes).status;
      } catch (std::runtime_error const&) {}  // no answer
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

// What one answer of a pull may be: at least what was acknowledged before it was asked for, at most what was begun
// before it came.
void pull_on(std::vector<std::unique_ptr<Pusher>> const& pushers, Doors& doors, std::atomic<bool> const& ends,
             Seen& seen) {
  ParameterClient client("", "reader", patience);
  while (!ends) {
    std::array<std::uint64_t, pushers_count> least{}, most{};
    for (std::size_t i = 0; i < pushers_count; ++i) least[i] = pushers[i]->acknowledged;
    client.ask(doors.next());
    Answer answer;
    try {
      answer = client.pull("p");
    } catch (std::runtime_error const&) {}  // no answer
    if (answer.status != 200) {
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

bool is_ready(FaultFleet& fleet) { return fleet.coordinator().get("/v1/parameters/p").json().at("state") == "ready"; }

Floats expected(std::vector<std::unique_ptr<Pusher>> const& pushers) {
  Floats values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(pushers[i % pushers_count]->acknowledged);
  return values;
}

constexpr std::array harms{
    Harm::delay,          Harm::cut, Harm::deaf, Harm::mute, Harm::silent, Harm::truncate, Harm::corrupt_message,
    Harm::corrupt_message};

}  // namespace

TEST_CASE("whatever happens to workers and connections: each acknowledged push counts once, and no reader sees less") {
  auto const seed = number_from_environment("CHORUS_SEED", 1);
  auto const faults = number_from_environment("CHORUS_FAULTS", 16);
  auto const soak = std::chrono::seconds(number_from_environment("CHORUS_SOAK_SECONDS", 0));
  auto const until = Clock::now() + soak;
  std::mt19937_64 random(seed);
  FaultFleet fleet(random());
  auto const made = fleet.coordinator().put(
      "/v1/parameters/p", R"({"group":"g","shape":[)" + std::to_string(elements) + R"(],"replicas":2,"shards":3})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  Doors doors(fleet);
  std::vector<std::unique_ptr<Pusher>> pushers;
  for (std::size_t i = 0; i < pushers_count; ++i) pushers.push_back(std::make_unique<Pusher>(i));
  std::map<std::string, int> survived;
  std::vector<double> well_ms;
  std::uint64_t pulls = 0, n = 0;
  for (; soak > 0s ? Clock::now() < until : n < faults; ++n) {
    auto const fault = draw_fault(random, harms);
    auto const moment = std::chrono::microseconds(random() % 50000),
               length = std::chrono::microseconds(random() % 1500000);
    INFO("seed " << seed << ", fault " << n << ": " << to_string(fault) << " of w" << fault.victim << " after "
                 << moment.count() << " us, for " << length.count() << " us");
    fleet.expect_health();
    std::atomic<bool> ends = false;
    Seen seen;
    std::vector<std::thread> clients;
    for (auto& pusher : pushers) clients.emplace_back([&] { push_on(*pusher, doors, ends); });
    clients.emplace_back([&] { pull_on(pushers, doors, ends, seen); });
    // The moments are what varies: they wait for nothing.
    std::this_thread::sleep_until(Clock::now() + moment);
    begin(fault, fleet);
    std::this_thread::sleep_until(Clock::now() + length);
    end(fault, fleet);
    auto const ended = Clock::now();
    auto const stands = fleet.stands_again() && eventually([&] { return is_ready(fleet); }, 30s);
    well_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - ended).count());
    ends = true;
    for (auto& client : clients) client.join();
    REQUIRE(stands);
    for (auto const& pusher : pushers) REQUIRE(pusher->acknowledged == pusher->begun);
    INFO(seen.first_wrong);
    CHECK(seen.wrong == 0);
    pulls += seen.pulls;
    auto const right = expected(pushers);
    for (std::size_t worker = 0; worker < FaultFleet::workers_count; ++worker) {
      auto const answer = ParameterClient(fleet.worker(worker).url, "judge").pull("p");
      REQUIRE_MESSAGE(answer.status == 200, answer.body);
      CHECK(ParameterClient::values<float>(answer.body) == right);
    }
    ++survived[to_string(fault)];
  }
  std::uint64_t pushes = 0;
  for (auto const& pusher : pushers) pushes += pusher->acknowledged;
  std::ranges::sort(well_ms);
  std::cout << n << " faults under " << pushes << " acknowledged pushes, each of which counted once, and " << pulls
            << " pulls, none of which was behind:";
  for (auto const& [name, count] : survived) std::cout << " " << name << " " << count;
  std::cout << "; ms from a fault's end until all copies stood again (min, median, max) "
            << std::lround(well_ms.front()) << ", " << std::lround(well_ms[well_ms.size() / 2]) << ", "
            << std::lround(well_ms.back()) << std::endl;
}
