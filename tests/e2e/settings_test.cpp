// Settings on which both sides must agree, after a restart of one side with another value.
#include <doctest/doctest.h>
#include <signal.h>

#include <optional>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/held_port.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

// A coordinator that keeps its journal and port over restarts, which the workers do not notice.
class Upgraded {
 public:
  Upgraded(std::size_t workers, std::vector<std::string> const& flags) {
    start(flags);
    for (std::size_t i = 0; i < workers; ++i)
      workers_.push_back(std::make_unique<Service>(
          "w" + std::to_string(i),
          std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator().url, "--id",
                                   "w" + std::to_string(i), "--log-level", "error"}));
    for (auto const& worker : workers_) REQUIRE(eventually([&] { return worker->get("/readyz").status == 200; }, 60s));
    REQUIRE(coordinator().put("/v1/groups/g", R"({"size":)" + std::to_string(workers) + "}").status == 201);
  }

  void restart(std::vector<std::string> const& flags) {
    coordinator().process.signal(SIGTERM);
    CHECK(coordinator().process.wait() == 0);
    start(flags);
  }
  Service& coordinator() { return *coordinator_; }

  std::int64_t lease_of(std::string const& worker) {
    return coordinator().get("/v1/workers/" + worker).json().at("lease_ms").to_number<std::int64_t>();
  }
  // True if any worker was ever lost, according to the events in the journal.
  bool lost_somebody() {
    httplib::Client client(coordinator().url);
    auto const events = client.Get("/v1/events?limit=1000&since=0", {{"Accept", "application/json"}});
    REQUIRE(events);
    REQUIRE(events->body.find("worker.joined") != std::string::npos);
    return events->body.find("worker.lost") != std::string::npos;
  }

 private:
  void start(std::vector<std::string> const& flags) {
    std::vector<std::string> arguments{binary("chorus-coordinator"), "--port",      port_.text(), "--journal",
                                       directory_ / "journal",       "--log-level", "error"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    coordinator_.reset();
    coordinator_ = std::make_unique<Service>("coordinator", std::move(arguments));
  }

  ScratchDirectory const directory_;
  HeldPort const port_;
  std::unique_ptr<Service> coordinator_;
  std::vector<std::unique_ptr<Service>> workers_;
};

}  // namespace

TEST_CASE("a coordinator that restarts with a shorter lease keeps its workers, which learn the new lease") {
  Upgraded cluster(2, {"--lease-ms", "12000"});
  auto const epoch = cluster.coordinator().get("/v1/groups/g").json().at("epoch");
  cluster.restart({"--lease-ms", "2000"});
  CHECK(cluster.lease_of("w0") == 12000);  // the promised lease still holds
  for (auto const* worker : {"w0", "w1"}) CHECK(eventually([&] { return cluster.lease_of(worker) == 2000; }, 30s));
  CHECK_FALSE(cluster.lost_somebody());
  auto const group = cluster.coordinator().get("/v1/groups/g").json();
  CHECK(group.at("state") == "ready");
  CHECK(group.at("epoch") == epoch);
}

TEST_CASE("a longer lease holds over two restarts, even if the next coordinator promises a shorter one") {
  Upgraded cluster(1, {"--lease-ms", "2000"});
  cluster.restart({"--lease-ms", "20000"});
  CHECK(cluster.lease_of("w0") == 20000);
  cluster.restart({"--lease-ms", "2000"});
  CHECK(cluster.lease_of("w0") == 20000);
  CHECK_FALSE(cluster.lost_somebody());
}

TEST_CASE("a worker whose drain timeout exceeds the coordinator's longest wait still hands its shards over") {
  Cluster cluster(0);
  cluster.add_worker("w0", "", {"--drain-ms", "1200000"});
  cluster.make_group("g");
  auto const made = cluster.coordinator.put("/v1/parameters/p", R"({"group":"g","shape":[1000],"shards":1})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  cluster.add_worker("w1", "");
  cluster.make_group("g");
  cluster.worker(0).process.signal(SIGTERM);
  CHECK(cluster.worker(0).process.wait(60s) == 0);
  auto const parameter = cluster.coordinator.get("/v1/parameters/p").json();
  CHECK(parameter.at("state") == "ready");
  CHECK(parameter.at("endpoints").at(0).at("worker") == "w1");
}

TEST_CASE("a collective of one worker with checksums and one without is refused with both names") {
  Cluster cluster(0);
  cluster.add_worker("w0", "host=h0", {"--shm", "off", "--link-checksum", "on"});
  cluster.add_worker("w1", "host=h1", {"--shm", "off", "--link-checksum", "off"});
  auto const sum = [&] {
    cluster.make_group("g", {"w0", "w1"});
    for (auto const i : {std::size_t{0}, cluster.size() - 1})
      REQUIRE(cluster.worker(i).put_tensor("x", "f32", std::vector<float>{1, 2}).status / 100 == 2);
    return cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "x"}});
  };
  auto const refused = sum();
  CHECK(refused.at("state") == "failed");
  auto const error = boost::json::serialize(refused.at("error"));
  for (auto const* said : {"w0", "w1", "--link-checksum"}) CHECK_MESSAGE(error.find(said) != std::string::npos, error);
  // The default, auto, accepts both kinds of peers.
  cluster.worker(1).process.signal(SIGTERM);
  CHECK(cluster.worker(1).process.wait(20s) == 0);
  cluster.add_worker("w1", "host=h1", {"--shm", "off"});
  CHECK(sum().at("state") == "succeeded");
  CHECK(cluster.worker(0).get_tensor<float>("x") == std::vector<float>{2, 4});
}
