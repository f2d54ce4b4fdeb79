// A coordinator that is killed: no collective is lost, none runs twice, and every rank has the same version with the
// matching sum.
#include <doctest/doctest.h>
#include <signal.h>

#include <random>
#include <set>
#include <thread>

#include "tests/support/fleets/coordinator_lives.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","timeout_ms":20000})";
constexpr std::size_t workers_count = 3;
constexpr std::size_t elements = 5000;

// Workers that stay, and several coordinators, one after another, on one journal and port.
class Fleet : public CoordinatorLives {
 public:
  Fleet() {
    for (std::size_t i = 0; i < workers_count; ++i)
      workers_.push_back(std::make_unique<Service>(
          "w" + std::to_string(i),
          std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator().url, "--id",
                                   "w" + std::to_string(i), "--locality", "host=h0", "--log-level", "error"}));
    for (auto const& worker : workers_) REQUIRE(eventually([&] { return worker->get("/readyz").status == 200; }));
    REQUIRE(coordinator().put("/v1/groups/g", R"({"workers":["w0","w1","w2"]})").status == 201);
    for (std::size_t i = 0; i < workers_count; ++i)
      REQUIRE(workers_[i]->put_tensor("x", "u64", std::vector<std::uint64_t>(elements, i + 1)).status / 100 == 2);
  }

  Service& worker(std::size_t i) { return *workers_.at(i); }

  // Returns the incarnation of a worker, as the coordinator knows it.
  std::string incarnation_of(std::size_t i) {
    auto const worker = coordinator().get("/v1/workers/w" + std::to_string(i)).json();
    REQUIRE(worker.at("state") == "ready");
    return std::string(worker.at("incarnation").as_string());
  }

  // Returns the version that all ranks have, and checks the value of each. Sums of u64 are exact, even when they wrap.
  std::uint64_t version() {
    auto const version = workers_[0]->tensor_version("x");
    std::uint64_t sum = 1 + 2 + 3;
    for (std::uint64_t v = 2; v < version; ++v) sum *= workers_count;
    for (std::size_t i = 0; i < workers_count; ++i) {
      REQUIRE(workers_[i]->tensor_version("x") == version);
      auto const expected = version == 1 ? i + 1 : sum;
      REQUIRE(workers_[i]->get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(elements, expected));
    }
    return version;
  }

  // Returns the final state of a collective; "" if it is unknown.
  std::string state_of(std::string const& id) {
    auto const record = coordinator().get("/v1/collectives/" + id + "?wait=20s");
    if (record.status == 404) return "";
    return std::string(record.json().at("state").as_string());
  }

 private:
  std::vector<std::unique_ptr<Service>> workers_;
};

// Sends a PUT to a coordinator that may be killed meanwhile; returns "" then.
std::string put_if_alive(Service const& coordinator, std::string const& id) {
  try {
    auto const answer = coordinator.put("/v1/collectives/" + id + "?wait=20s", body);
    return answer.status == 200 ? std::string(answer.json().at("state").as_string()) : answer.code();
  } catch (std::runtime_error const&) { return ""; }
}

}  // namespace

TEST_CASE(
    "a coordinator killed at any point of a collective leaves one version everywhere, and no collective runs twice") {
  Fleet fleet;
  std::uint64_t succeeded = 0;
  std::set<std::string> outcomes;
  int point = 1;
  for (bool dies = true; dies; ++point) {
    INFO("killed at point " << point);
    auto const id = "c" + std::to_string(point);
    fleet.kill();
    fleet.start_one_that_dies_at(point);
    auto const told = put_if_alive(fleet.coordinator(), id);
    dies = eventually([&] { return fleet.coordinator_has_died(); }, 3s);
    if (dies) fleet.start();
    auto const state = fleet.state_of(id);
    INFO("told " << told << ", then " << state);
    outcomes.insert(state);
    if (told == "succeeded") CHECK(state == "succeeded");
    succeeded += state == "succeeded";
    CHECK(fleet.version() == succeeded + 1);
    // A collective that had begun is not begun again; one that was unknown is.
    auto const again = put_if_alive(fleet.coordinator(), id);
    CHECK(again == (state.empty() ? "succeeded" : state));
    succeeded += state.empty() && again == "succeeded";
    CHECK(fleet.version() == succeeded + 1);
    REQUIRE(point < 100);
  }
  MESSAGE("killed at " << point - 2 << " points");
  CHECK(point > 12);
  CHECK(outcomes.contains(""));  // killed before the request was durable, and so before a worker was told
  CHECK(outcomes.contains("failed"));
  CHECK(outcomes.contains("succeeded"));
}

TEST_CASE("a coordinator killed fifty times at random leaves one version everywhere, and no collective runs twice") {
  Fleet fleet;
  auto const seed = std::random_device()();
  MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  constexpr int kills = 50, most_per_life = 15;
  std::vector<std::string> ids, incarnations;
  for (std::size_t i = 0; i < workers_count; ++i) incarnations.push_back(fleet.incarnation_of(i));
  for (int life = 0; life < kills; ++life) {
    std::thread launches([&] {
      for (int number = 0; number < most_per_life; ++number) {
        auto const id = "c" + std::to_string(life) + "-" + std::to_string(number);
        ids.push_back(id);
        if (put_if_alive(fleet.coordinator(), id).empty()) return;
      }
    });
    auto const moment = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 100000);
    eventually([&] { return std::chrono::steady_clock::now() >= moment; });
    fleet.coordinator().process.signal(SIGKILL);
    launches.join();
    fleet.coordinator().process.wait();
    fleet.start();
  }
  std::uint64_t succeeded = 0;
  std::vector<std::string> unheard;
  for (auto const& id : ids) {
    auto const state = fleet.state_of(id);
    CHECK(state != "pending");
    CHECK(state != "running");
    succeeded += state == "succeeded";
    if (state.empty()) unheard.push_back(id);
  }
  CHECK(fleet.version() == succeeded + 1);
  for (auto const& id : ids) put_if_alive(fleet.coordinator(), id);
  CHECK(fleet.version() == succeeded + unheard.size() + 1);
  MESSAGE(ids.size() << " collectives, " << succeeded << " succeeded, " << unheard.size() << " never heard of");
  CHECK(succeeded > 0);
  for (std::size_t i = 0; i < workers_count; ++i) CHECK(fleet.incarnation_of(i) == incarnations[i]);
}

TEST_CASE("after a journal was restored from an old copy, launches that workers do not know are launched") {
  Fleet fleet;
  REQUIRE(put_if_alive(fleet.coordinator(), "before") == "succeeded");
  fleet.kill();
  fleet.copy_journal();
  fleet.start();
  for (auto const* id : {"a", "b", "c"}) REQUIRE(put_if_alive(fleet.coordinator(), id) == "succeeded");
  fleet.kill();
  fleet.restore_copy();
  fleet.start();
  CHECK(fleet.state_of("before") == "succeeded");
  CHECK(fleet.state_of("a").empty());
  for (auto const* id : {"d", "e", "f"}) CHECK(put_if_alive(fleet.coordinator(), id) == "succeeded");
  CHECK(fleet.version() == 1 + 7);
}

TEST_CASE("a coordinator does not start on a file that is no journal, and leaves the file unchanged") {
  ScratchDirectory const here;
  write_file(here / "journal", "not a database\n");
  for (auto const& path : {here / "journal", here / "", here / "no/such/directory/journal"}) {
    INFO(path);
    Process coordinator({binary("chorus-coordinator"), "--port", "0", "--journal", path, "--log-level", "off"});
    CHECK(coordinator.wait() == 1);
  }
  CHECK(content_of(here / "journal") == "not a database\n");
}
