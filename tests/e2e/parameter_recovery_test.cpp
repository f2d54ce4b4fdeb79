// Parameters outlive their coordinator, which is killed during pushes at any moment: no acknowledged push is lost.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <future>

#include "tests/support/fleets/coordinator_lives.hpp"
#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t elements = 1000;

// Workers, and several coordinators, one after another, on one journal and port.
class Fleet : public CoordinatorLives {
 public:
  explicit Fleet(std::size_t workers, std::string const& replicas = "2") {
    std::string ids;
    for (std::size_t i = 0; i < workers; ++i) {
      add_worker();
      ids += (i > 0 ? "," : "") + std::string("\"w") + std::to_string(i) + "\"";
    }
    for (auto const& worker : workers_) REQUIRE(eventually([&] { return worker->get("/readyz").status == 200; }));
    auto const group = coordinator().put("/v1/groups/g", "{\"workers\":[" + ids + R"(],"on_failure":"shrink"})");
    REQUIRE_MESSAGE(group.status == 201, group.body);
    auto const made =
        coordinator().put("/v1/parameters/w", R"({"group":"g","shape":[1000],"shards":3,"replicas":)" + replicas + "}");
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }

  void add_worker() {
    auto const id = "w" + std::to_string(workers_.size());
    workers_.push_back(std::make_unique<Service>(
        id, std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator().url, "--id",
                                     id, "--locality", "host=h" + id, "--drain-ms", "60000", "--log-level", "error"}));
  }
  void kill_worker(std::size_t i) {
    workers_.at(i)->process.signal(SIGKILL);
    workers_.at(i)->process.wait();
  }
  Service& worker(std::size_t i) { return *workers_.at(i); }
  bool is_ready() {
    try {
      auto const answer = coordinator().get("/v1/parameters/w");
      return answer.status == 200 && answer.json().at("state") == "ready";
    } catch (std::runtime_error const&) { return false; }  // the coordinator has died
  }
  std::size_t owner_of(std::size_t shard) {
    auto const placed = coordinator().get("/v1/parameters/w").json();
    for (auto const& endpoint : placed.at("endpoints").as_array())
      if (endpoint.at("role") == "owner" && endpoint.at("shard").to_number<std::size_t>() == shard)
        return static_cast<std::size_t>(endpoint.at("worker").as_string().at(1) - '0');
    throw std::runtime_error("the shard has no owner");
  }
  Floats values(std::size_t entry) {
    auto const answer = ParameterClient(worker(entry).url, "reader").pull("w");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return ParameterClient::values<float>(answer.body);
  }

 private:
  std::vector<std::unique_ptr<Service>> workers_;
};

// Clients that push ones through one worker until their counts are requested. A push without acknowledgement is
// repeated unchanged.
class Load {
 public:
  Load(Fleet& fleet, std::size_t entry) {
    for (int c = 0; c < 2; ++c)
      clients_.push_back(std::async(std::launch::async, [this, url = fleet.worker(entry).url, c] {
        ParameterClient client(url, "c" + std::to_string(c));
        auto const ones = ParameterClient::bytes(Floats(elements, 1));
        for (auto is_last = false; !is_last;) {
          is_last = ends_;
          while (client.push("w", ones).status != 200) {
            if (gives_up_) return;
            pause_briefly();
          }
          ++acknowledged_;
        }
      }));
  }
  ~Load() { ends_ = gives_up_ = true; }
  Load(Load const&) = delete;
  Load& operator=(Load const&) = delete;

  bool goes_on(std::uint64_t pushes = 10) {
    auto const before = acknowledged_.load();
    return eventually([&] { return acknowledged_ > before + pushes; }, std::chrono::seconds(30));
  }
  std::uint64_t stop() {
    ends_ = true;
    for (auto& client : clients_) client.get();
    return acknowledged_;
  }

 private:
  std::atomic<bool> ends_ = false, gives_up_ = false;
  std::atomic<std::uint64_t> acknowledged_ = 0;
  std::vector<std::future<void>> clients_;
};

}  // namespace

TEST_CASE("pushes go on without a coordinator, and with the next one") {
  Fleet fleet(3);
  Load load(fleet, 0);
  auto const before = fleet.coordinator().get("/v1/parameters/w").json();
  CHECK(load.goes_on());
  fleet.kill();
  CHECK(load.goes_on());
  fleet.start();
  CHECK(load.goes_on());
  CHECK(fleet.coordinator().get("/v1/parameters/w").json() == before);
  auto const sum = static_cast<float>(load.stop());
  CHECK(fleet.values(1) == Floats(elements, sum));
}

TEST_CASE("an owner that dies without a coordinator is replaced once a coordinator runs again") {
  Fleet fleet(4);
  Load load(fleet, fleet.owner_of(0));
  CHECK(load.goes_on());
  auto const victim = fleet.owner_of(1);
  fleet.kill();
  fleet.kill_worker(victim);
  fleet.start();
  CHECK(load.goes_on());
  CHECK(eventually([&] { return fleet.is_ready(); }, std::chrono::seconds(30)));
  auto const entry = fleet.owner_of(0);
  auto const sum = static_cast<float>(load.stop());
  CHECK(fleet.values(entry) == Floats(elements, sum));
}

TEST_CASE("a worker that gets SIGTERM without a coordinator waits for the next one, and loses nothing") {
  for (auto const* const replicas : {"1", "2"}) {
    CAPTURE(replicas);
    Fleet fleet(3, replicas);
    Load load(fleet, fleet.owner_of(0));
    CHECK(load.goes_on());
    auto const entry = fleet.owner_of(0), leaving = fleet.owner_of(1);
    fleet.kill();
    fleet.worker(leaving).process.signal(SIGTERM);
    REQUIRE(eventually([&] { return fleet.worker(leaving).metric("chorus_draining") == 1; }));
    fleet.start();
    CHECK(fleet.worker(leaving).process.wait(std::chrono::seconds(60)) == 0);
    REQUIRE(load.goes_on());
    CHECK(eventually([&] { return fleet.is_ready(); }, std::chrono::seconds(30)));
    auto const sum = static_cast<float>(load.stop());
    CHECK(fleet.values(entry) == Floats(elements, sum));
  }
}

TEST_CASE(
    "a coordinator that dies at any point of a takeover: the next one finishes the takeover, and every push counts "
    "once") {
  auto dies = true;
  for (int point = 1; dies; ++point) {
    INFO("killed at point " << point);
    Fleet fleet(4);
    auto const entry = fleet.owner_of(0), victim = fleet.owner_of(1);
    Load load(fleet, entry);
    CHECK(load.goes_on(3));
    fleet.kill();
    fleet.start_one_that_dies_at(point);
    fleet.kill_worker(victim);
    CHECK(eventually([&] { return fleet.coordinator_has_died() || fleet.is_ready(); }, std::chrono::seconds(30)));
    dies = fleet.coordinator_has_died();
    fleet.kill();
    fleet.start();
    CHECK(load.goes_on(3));
    CHECK(eventually([&] { return fleet.is_ready(); }, std::chrono::seconds(30)));
    auto const sum = static_cast<float>(load.stop());
    CHECK(fleet.values(entry) == Floats(elements, sum));
  }
}
