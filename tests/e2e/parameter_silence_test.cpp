// Owners, all workers, or the coordinator are stopped or cut off for longer than a lease during pushes, and go on as
// the same processes. Silence is not death: each acknowledged push counts exactly once, and at no time do two workers
// accept pushes for the same shard.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "tests/support/faults/fault_proxy.hpp"
#include "tests/support/fleets/parameters.hpp"
#include "tests/support/held_port.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t elements = 1000;
constexpr std::size_t workers_count = 3;
constexpr auto longer_than_a_lease = 2500ms;
std::string const path = "/v1/parameters/w";

// Three workers with a lease of a second; each reaches the coordinator through a separate proxy.
class Fleet {
 public:
  Fleet() {
    start_coordinator();
    for (std::size_t i = 0; i < workers_count; ++i) {
      ways_.push_back(std::make_unique<FaultProxy>(i));
      ways_.back()->forward_to(port_.number());
      auto const id = "w" + std::to_string(i);
      std::vector<std::string> arguments{binary("chorus-worker"), "--port",      "0",  "--coordinator",
                                         url_of(*ways_.back()),   "--id",        id,   "--locality",
                                         "host=h" + id,           "--log-level", "off"};
      workers_.push_back(std::make_unique<Service>(id, std::move(arguments)));
      REQUIRE(eventually([&] { return workers_.back()->get("/readyz").status == 200; }));
    }
    auto const group = coordinator().put("/v1/groups/g", R"({"workers":["w0","w1","w2"]})");
    REQUIRE_MESSAGE(group.status == 201, group.body);
  }

  void start_coordinator() {
    coordinator_.reset();
    coordinator_ = std::make_unique<Service>(
        "coordinator", std::vector<std::string>{binary("chorus-coordinator"), "--port", port_.text(), "--lease-ms",
                                                "1000", "--journal", directory_ / "journal", "--log-level", "off"});
  }
  void restart_coordinator() {
    coordinator().process.signal(SIGKILL);
    coordinator().process.wait();
    start_coordinator();
  }
  void make(std::string const& more) {
    auto const made = coordinator().put(path, R"({"group":"g","shape":[1000],"shards":1)" + more + "}");
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }

  Service& coordinator() { return *coordinator_; }
  Service& worker(std::size_t i) { return *workers_.at(i); }
  // Returns the proxy from worker i to the coordinator. Requests of the coordinator to workers bypass it.
  FaultProxy& way(std::size_t i) { return *ways_.at(i); }

  boost::json::value placed() { return coordinator().get(path).json(); }
  std::string state() { return std::string(placed().at("state").as_string()); }
  std::size_t holder(std::string_view role) {
    auto const now = placed();
    for (auto const& endpoint : now.at("endpoints").as_array())
      if (endpoint.at("role").as_string() == role)
        return static_cast<std::size_t>(endpoint.at("worker").as_string().at(1) - '0');
    return workers_count;
  }
  std::size_t other_than(std::set<std::size_t> const& these) {
    for (std::size_t i = 0; i < workers_count; ++i)
      if (!these.contains(i)) return i;
    throw std::runtime_error("all of them");
  }
  bool becomes(std::string const& wanted) {
    return eventually([&] { return state() == wanted; }, 60s);
  }
  Floats values(std::size_t entry) {
    auto const answer = ParameterClient(worker(entry).url, "judge").pull("w");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return ParameterClient::values<float>(answer.body);
  }
  // Returns each worker's own report about shards of the parameter: one line per copy.
  std::vector<std::string> copies() {
    std::vector<std::string> all;
    for (auto const& worker : workers_) {
      auto const list = worker->get("/v1/parameters").json();
      for (auto const& status : list.at("items").as_array())
        all.push_back(worker->id + " " + std::string(status.at("role").as_string()) +
                      (status.at("complete").as_bool() ? "" : " incomplete"));
    }
    return all;
  }

 private:
  static std::string url_of(FaultProxy const& proxy) { return "http://127.0.0.1:" + std::to_string(proxy.port()); }

  ScratchDirectory const directory_;
  HeldPort const port_;
  std::unique_ptr<Service> coordinator_;
  std::vector<std::unique_ptr<FaultProxy>> ways_;
  std::vector<std::unique_ptr<Service>> workers_;
};

// One client per worker, which pushes ones through it until told to end. A push without acknowledgement is repeated
// unchanged.
class Load {
 public:
  explicit Load(Fleet& fleet) {
    for (std::size_t i = 0; i < workers_count; ++i)
      clients_.emplace_back([this, i, url = fleet.worker(i).url] {
        ParameterClient client(url, "c" + std::to_string(i), 3s);
        auto const ones = ParameterClient::bytes(Floats(elements, 1));
        for (auto is_last = false; !is_last;) {
          is_last = ends_;
          auto const last_attempt = Clock::now() + 90s;
          while (!is_acknowledged(client, ones)) {
            if (Clock::now() > last_attempt) return void(has_given_up_ = true);
            pause_briefly();
          }
          ++acknowledged_.at(i);
        }
      });
  }
  ~Load() { stop(); }
  Load(Load const&) = delete;
  Load& operator=(Load const&) = delete;

  // Waits until all clients have pushed, except the client of worker `except`.
  bool goes_on(std::size_t except = workers_count) {
    std::vector<std::uint64_t> before(acknowledged_.begin(), acknowledged_.end());
    return eventually(
        [&] {
          for (std::size_t i = 0; i < before.size(); ++i)
            if (i != except && acknowledged_.at(i) < before[i] + 3) return false;
          return true;
        },
        60s);
  }
  float stop() {
    ends_ = true;
    for (auto& client : clients_)
      if (client.joinable()) client.join();
    CHECK_FALSE(has_given_up_.load());
    std::uint64_t sum = 0;
    for (auto const& count : acknowledged_) sum += count;
    return static_cast<float>(sum);
  }

 private:
  static bool is_acknowledged(ParameterClient& client, std::string const& bytes) {
    try {
      return client.push("w", bytes).status == 200;
    } catch (std::runtime_error const&) { return false; }  // no answer
  }
  std::atomic<bool> ends_ = false, has_given_up_ = false;
  std::array<std::atomic<std::uint64_t>, workers_count> acknowledged_{};
  std::vector<std::thread> clients_;
};

// Stops the services for this time, which is the fault.
void stop(std::set<Service*> const& services, std::chrono::milliseconds length = longer_than_a_lease) {
  for (auto* const service : services) service->process.signal(SIGSTOP);
  std::this_thread::sleep_until(Clock::now() + length);
  for (auto* const service : services) service->process.signal(SIGCONT);
}

void everything_is_there(Fleet& fleet, Load& load) {
  CHECK(load.goes_on());
  CHECK(fleet.becomes("ready"));
  auto const sum = load.stop();
  for (std::size_t i = 0; i < workers_count; ++i) CHECK(fleet.values(i) == Floats(elements, sum));
}

constexpr std::array replicas{R"(,"replicas":1)", R"(,"replicas":2)"};

}  // namespace

TEST_CASE("an owner that is stopped for longer than its lease returns with its values, or its backup goes on") {
  for (auto const* more : replicas) {
    INFO("parameter " << more);
    Fleet fleet;
    fleet.make(more);
    Load load(fleet);
    CHECK(load.goes_on());
    for (int round = 0; round < 2; ++round) {
      stop({&fleet.worker(fleet.holder("owner"))});
      CHECK(load.goes_on());
    }
    everything_is_there(fleet, load);
  }
}

TEST_CASE("a stopped sole owner makes its parameter unavailable by name, and ready when it goes on") {
  Fleet fleet;
  fleet.make("");
  auto const owner = fleet.holder("owner"), other = fleet.other_than({owner});
  ParameterClient client(fleet.worker(other).url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  REQUIRE(client.push("w", ones).status == 200);
  auto const epoch = fleet.placed().at("epoch").as_int64();
  fleet.worker(owner).process.signal(SIGSTOP);
  CHECK(fleet.becomes("unavailable"));
  auto const why = std::string(fleet.placed().at("why").as_string());
  CHECK_MESSAGE(why.find("'" + fleet.worker(owner).id + "'") != std::string::npos, why);
  fleet.restart_coordinator();
  CHECK(fleet.becomes("unavailable"));
  // Repeats the pull until the caches of placements have noticed.
  auto answer = client.pull("w", {}, "?timeout_ms=1500");
  CHECK(eventually([&] {
    answer = client.pull("w", {}, "?timeout_ms=5000");
    return answer.code() == "unavailable";
  }));
  CHECK(answer.status == 503);
  CHECK(answer.json().at("retryable") == true);
  CHECK_MESSAGE(answer.body.find("'" + fleet.worker(owner).id + "'") != std::string::npos, answer.body);
  fleet.worker(owner).process.signal(SIGCONT);
  CHECK(fleet.becomes("ready"));
  CHECK(fleet.placed().at("epoch").as_int64() > epoch);
  CHECK(fleet.holder("owner") == owner);
  CHECK(eventually([&] { return client.push("w", ones).status == 200; }));
  CHECK(client.repeat("w", ones, 0).json().at("duplicate") == true);
  CHECK(fleet.values(other) == Floats(elements, 2));
}

TEST_CASE("all workers are stopped at once, for less than four leases and for more, and every push counts") {
  for (auto const* more : replicas)
    for (auto const length : {2500ms, 6000ms}) {
      INFO("parameter " << more << ", " << length.count() << " ms");
      Fleet fleet;
      fleet.make(more);
      Load load(fleet);
      CHECK(load.goes_on());
      stop({&fleet.worker(0), &fleet.worker(1), &fleet.worker(2)}, length);
      everything_is_there(fleet, load);
    }
}

TEST_CASE("the coordinator is stopped for longer than a lease: pushes wait, and all of them count") {
  for (auto const* more : replicas) {
    INFO("parameter " << more);
    Fleet fleet;
    fleet.make(more);
    Load load(fleet);
    CHECK(load.goes_on());
    auto const epoch = fleet.placed().at("epoch").as_int64();
    stop({&fleet.coordinator()});
    everything_is_there(fleet, load);
    // The coordinator has given up no worker that it could not hear.
    CHECK(fleet.placed().at("epoch").as_int64() == epoch);
  }
}

TEST_CASE("all workers are cut off from the coordinator for longer than its patience, and every push counts") {
  for (auto const* more : replicas) {
    INFO("parameter " << more);
    Fleet fleet;
    fleet.make(more);
    Load load(fleet);
    CHECK(load.goes_on());
    for (std::size_t i = 0; i < workers_count; ++i) fleet.way(i).suffer(Harm::silent);
    std::this_thread::sleep_until(Clock::now() + 6s);
    for (std::size_t i = 0; i < workers_count; ++i) fleet.way(i).suffer(Harm::none);
    everything_is_there(fleet, load);
  }
}

TEST_CASE("an owner that is cut off from the coordinator accepts no push after its lease, and marks its answers") {
  Fleet fleet;
  fleet.make("");
  auto const owner = fleet.holder("owner");
  ParameterClient client(fleet.worker(owner).url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  REQUIRE(client.push("w", ones).status == 200);
  CHECK(client.pull("w").header("Parameter-Unconfirmed").empty());
  fleet.way(owner).suffer(Harm::silent);
  CHECK(fleet.becomes("unavailable"));
  // By its own clock, the owner's lease has ended by then.
  auto const refused = client.push("w", ones);
  CHECK_MESSAGE(refused.status == 503, refused.body);
  CHECK(refused.code() == "unavailable");
  CHECK(refused.header("Retry-After") == "1");
  auto const shown = client.pull("w");
  CHECK(shown.status == 200);
  CHECK(shown.header("Parameter-Unconfirmed") == "true");
  CHECK(ParameterClient::values<float>(shown.body) == Floats(elements, 1));
  auto const passed_on = ParameterClient(fleet.worker(fleet.other_than({owner})).url, "r").pull("w");
  CHECK(passed_on.status == 200);
  CHECK(passed_on.header("Parameter-Unconfirmed") == "true");

  // The parameter is given up and created anew, with another owner. The owner that was cut off still accepts no push.
  auto const again = fleet.coordinator().put(path, R"({"group":"g","shape":[1000],"shards":1,"recreate":true})");
  REQUIRE_MESSAGE(again.status == 201, again.body);
  auto const next = fleet.holder("owner");
  CHECK(next != owner);
  CHECK(ParameterClient(fleet.worker(owner).url, "c2").push("w", ones).status != 200);
  ParameterClient fresh(fleet.worker(next).url, "c");
  CHECK(fresh.push("w", ones).status == 200);
  CHECK(fleet.values(next) == Floats(elements, 1));
  fleet.way(owner).suffer(Harm::none);
  CHECK(eventually([&] { return fleet.copies() == std::vector{fleet.worker(next).id + " owner"}; }, 30s));
  CHECK(fleet.values(owner) == Floats(elements, 1));
}

TEST_CASE("an owner that is cut off from the coordinator alone is replaced, and every push counts") {
  Fleet fleet;
  fleet.make(replicas[1]);
  Load load(fleet);
  CHECK(load.goes_on());
  auto const owner = fleet.holder("owner");
  fleet.way(owner).suffer(Harm::silent);
  CHECK(eventually([&] { return fleet.holder("owner") != owner; }, 30s));
  CHECK(load.goes_on(owner));
  fleet.way(owner).suffer(Harm::none);
  everything_is_there(fleet, load);
  // No worker keeps a copy that no shard needs.
  CHECK(eventually(
      [&] {
        auto const copies = fleet.copies();
        return copies.size() == 2 && std::ranges::none_of(copies, [](auto const& copy) {
                 return copy.find("incomplete") != std::string::npos;
               });
      },
      30s));
}

TEST_CASE("a killed worker without backup loses its shards, which begin anew on request") {
  Fleet fleet;
  fleet.make("");
  auto const owner = fleet.holder("owner"), other = fleet.other_than({owner});
  ParameterClient client(fleet.worker(other).url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  REQUIRE(client.push("w", ones).status == 200);
  fleet.worker(owner).process.signal(SIGKILL);
  fleet.worker(owner).process.wait();
  CHECK(fleet.becomes("lost"));
  CHECK(eventually([&] { return client.pull("w", {}, "?timeout_ms=500").code() == "parameter_lost"; }));
  auto const request = R"({"group":"g","shape":[1000],"shards":1)";
  CHECK(fleet.coordinator().put(path, request + std::string("}")).json().at("state") == "lost");
  auto const again = fleet.coordinator().put(path, request + std::string(R"(,"recreate":true})"));
  CHECK_MESSAGE(again.status == 201, again.body);
  CHECK(again.json().at("state") == "ready");
  ParameterClient fresh(fleet.worker(other).url, "c");
  CHECK(fresh.push("w", ones).status == 200);
  CHECK(fleet.values(other) == Floats(elements, 1));
}
