// Coordinators, etcd and workers on separate hosts, with a network between them that silently drops packets.
#include <doctest/doctest.h>

#include <thread>

#include "tests/support/faults/network_hosts.hpp"
#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/etcd.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

// Two coordinators on hosts 0 and 1, two workers on host 2, etcd on the test's host.
class SeparatedFleet {
 public:
  static constexpr std::size_t workers_host = 2;

  explicit SeparatedFleet(NetworkHosts& hosts) : hosts_(hosts), etcd_(1, hosts.own_address()) {
    for (std::size_t i = 0; i < 2; ++i) {
      coordinators_.emplace_back();
      start(i);
    }
    REQUIRE(eventually([&] { return leads(0) || leads(1); }, 20s));
    for (std::uint64_t i = 0; i < 2; ++i) {
      auto const id = "w" + std::to_string(i);
      workers_.push_back(std::make_unique<Service>(
          id, hosts.on(workers_host, {binary("chorus-worker"), "--host", hosts.address(workers_host), "--port",
                                      std::to_string(7071 + i), "--coordinator", url(0) + "," + url(1), "--id", id,
                                      "--locality", "host=h2", "--insecure-no-auth", "--log-level", "error"})));
      REQUIRE(workers_.back()->put_tensor("x", "u64", std::vector<std::uint64_t>(1000, i + 1)).status == 201);
    }
    for (auto const& worker : workers_) REQUIRE(eventually([&] { return worker->get("/readyz").status == 200; }));
    REQUIRE(at(leader()).put("/v1/groups/g", R"({"workers":["w0","w1"]})").status == 201);
  }

  void start(std::size_t i) {
    coordinators_[i] = std::make_unique<Service>(
        "c" + std::to_string(i),
        hosts_.on(i, {binary("chorus-coordinator"), "--host", hosts_.address(i), "--port", "7070", "--etcd",
                      etcd_.urls(), "--lease-ms", "2000", "--insecure-no-auth", "--log-level", "error"}));
  }
  [[nodiscard]] bool leads(std::size_t i) const { return coordinators_[i]->is_ready(); }
  [[nodiscard]] std::size_t leader() const { return leads(0) ? 0 : 1; }
  Service& at(std::size_t i) { return *coordinators_.at(i); }

  // Returns the state of a launch, or the code of its problem.
  std::string launch(std::size_t by, int timeout_ms = 5000) {
    auto const answer = at(by).post("/v1/collectives?wait=20s",
                                    R"({"group":"g","tensor":"x","timeout_ms":)" + std::to_string(timeout_ms) + "}");
    return answer.status == 200 ? std::string(answer.json().at("state").as_string()) : answer.code();
  }
  // True if a launch succeeds in time.
  bool launches_again(std::size_t by) {
    return eventually([&] { return launch(by) == "succeeded"; }, 30s);
  }
  [[nodiscard]] std::uint64_t version() const { return workers_.front()->tensor_version("x"); }
  [[nodiscard]] std::int64_t epoch(std::size_t by) {
    return at(by).get("/v1/groups/g").json().at("epoch").to_number<std::int64_t>();
  }
  // Makes a members' call. True if it succeeds.
  [[nodiscard]] bool members_call() const {
    std::vector<int> statuses(workers_.size());
    std::vector<std::thread> calls;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      calls.emplace_back([this, i, &statuses] {
        statuses[i] =
            workers_[i]->post("/v1/groups/g/all_reduce", R"({"tensor":"x","output":"y","timeout_ms":10000})").status;
      });
    for (auto& call : calls) call.join();
    return statuses == std::vector<int>(workers_.size(), 200);
  }

 private:
  [[nodiscard]] std::string url(std::size_t i) const { return "http://" + hosts_.address(i) + ":7070"; }

  NetworkHosts& hosts_;
  Etcd etcd_;
  std::vector<std::unique_ptr<Service>> coordinators_;
  std::vector<std::unique_ptr<Service>> workers_;
};

bool is_skipped(NetworkHosts const& hosts) {
  auto const why = Etcd::missing().empty() ? hosts.missing() : Etcd::missing();
  if (!why.empty()) MESSAGE("skipped: " << why);
  return !why.empty();
}

}  // namespace

TEST_CASE("a leader that is cut off from etcd, but not from workers, ends before the other coordinator leads") {
  NetworkHosts hosts(3);
  if (is_skipped(hosts)) return;
  SeparatedFleet fleet(hosts);
  auto const former = fleet.leader();
  REQUIRE(fleet.launch(former) == "succeeded");
  hosts.cut(former, hosts.own_address());
  // The test cannot reach the former leader's address through the cut, and asks its process.
  CHECK(eventually([&] { return fleet.leads(1 - former); }, 20s));
  CHECK(fleet.at(former).process.wait() == 1);
  CHECK(fleet.launches_again(1 - former));
  CHECK(fleet.epoch(1 - former) == 1);
  hosts.heal(former);
  REQUIRE(hosts.missing().empty());
}

TEST_CASE("a leader that is cut off from workers, but not from etcd, goes on leading and loses no worker") {
  NetworkHosts hosts(3);
  if (is_skipped(hosts)) return;
  SeparatedFleet fleet(hosts);
  auto const leader = fleet.leader();
  REQUIRE(fleet.launch(leader) == "succeeded");
  auto const version = fleet.version();
  hosts.cut(leader, hosts.address(SeparatedFleet::workers_host));
  CHECK(fleet.launch(leader, 3000) != "succeeded");
  CHECK(fleet.members_call());
  // The launches take longer than the workers' lease of 2 s. The leader hears no worker at all, and therefore loses
  // none.
  CHECK(fleet.launch(leader, 3000) != "succeeded");
  CHECK(fleet.version() == version);
  CHECK(fleet.leads(leader));
  hosts.heal(leader);
  CHECK(fleet.launches_again(leader));
  CHECK(fleet.leads(leader));
  CHECK(fleet.epoch(leader) == 1);
  CHECK(fleet.version() == version + 1);
  REQUIRE(hosts.missing().empty());
}
