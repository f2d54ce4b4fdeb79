// A member that was stopped, was lost and continues, and a member whose name a newer process has taken: neither writes
// a byte into the results that the others have made since, and each is told why.
#include <doctest/doctest.h>
#include <signal.h>

#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t elements = 4 << 20;  // of 8 bytes: long enough to be stopped in the middle
constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":30000})";
constexpr char const* call = R"({"tensor":"x","output":"y","timeout_ms":20000})";

// Four members w0..w3 that hold 2^i, in a group that goes on without a lost one.
struct Members {
  explicit Members(std::string const& shm) : flags{"--shm", shm} {
    for (auto const* id : {"w0", "w1", "w2", "w3"}) cluster.add_worker(id, "host=h0", flags);
    for (std::size_t i = 0; i < 4; ++i) put(cluster.worker(i), std::uint64_t{1} << i);
    REQUIRE(cluster.coordinator
                .put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"],"on_failure":"shrink","min_ranks":2})")
                .status == 201);
  }

  static void put(Service const& worker, std::uint64_t value) {
    REQUIRE(worker.put_tensor("x", "u64", std::vector<std::uint64_t>(elements, value)).status / 100 == 2);
  }

  static bool holds(Service const& worker, std::string const& tensor, std::uint64_t value) {
    return worker.get_tensor<std::uint64_t>(tensor) == std::vector<std::uint64_t>(elements, value);
  }

  bool survivors_hold(std::string const& tensor, std::uint64_t value) {
    return holds(cluster.worker(0), tensor, value) && holds(cluster.worker(1), tensor, value) &&
           holds(cluster.worker(2), tensor, value);
  }

  [[nodiscard]] json::value group() { return cluster.coordinator.get("/v1/groups/g").json(); }

  bool stands_with(std::size_t members) {
    auto const now = group();
    return now.at("state") == "ready" && now.at("members").as_array().size() == members;
  }

  [[nodiscard]] std::string incarnation_of(std::string const& id) {
    return std::string(cluster.coordinator.get("/v1/workers/" + id).json().at("incarnation").as_string());
  }

  // Stops w3 while collective c runs. Returns the record of c once the others have gone on without w3.
  json::value stop_last_within(std::string const& c) {
    json::value record;
    std::thread launch([&] { record = cluster.coordinator.put("/v1/collectives/" + c + "?wait=40s", body).json(); });
    CHECK(eventually([&] {
      auto const now = cluster.coordinator.get("/v1/collectives/" + c);
      return now.status == 200 && now.json().at("state") == "running";
    }));
    cluster.worker(3).process.signal(SIGSTOP);
    launch.join();
    return record;
  }

  json::value run_again() { return cluster.coordinator.post("/v1/collectives?wait=40s", body).json(); }

  // Makes a members' call of the remaining three.
  std::vector<Answer> call_survivors() {
    std::vector<Answer> answers(3);
    std::vector<std::thread> calls;
    for (std::size_t i = 0; i < 3; ++i)
      calls.emplace_back([&, i] { answers[i] = cluster.worker(i).post("/v1/groups/g/all_reduce", call); });
    for (auto& one : calls) one.join();
    return answers;
  }

  std::vector<std::string> const flags;
  Cluster cluster{0, {}, {"--lease-ms", "2000"}};
};

// Returns the coordinator's request for `run` of an epoch, as a process of that epoch could replay it.
std::string order_of(json::value const& group, std::uint64_t run, std::size_t rank) {
  json::array members;
  for (auto const& member : group.at("members").as_array())
    members.push_back({{"rank", member.at("rank")},
                       {"worker", member.at("worker")},
                       {"incarnation", member.at("incarnation")},
                       {"url", member.at("url")}});
  return json::serialize(json::object{{"run", run},
                                      {"group", "g"},
                                      {"epoch", group.at("epoch")},
                                      {"token", "0123456789abcdef"},
                                      {"op", "all_reduce"},
                                      {"algorithm", "ring"},
                                      {"rank", rank},
                                      {"members", members},
                                      {"tensor", "x"},
                                      {"reduce", "sum"},
                                      {"version", 1},
                                      {"dtype", "u64"},
                                      {"elements", elements},
                                      {"timeout_ms", 1000}});
}

}  // namespace

TEST_CASE("a member that was stopped within a collective and continues later is refused, and joins the next epoch") {
  for (auto const* shm : {"on", "off"}) {
    INFO("shm " << shm);
    Members members(shm);
    auto& cluster = members.cluster;
    auto& late = cluster.worker(3);
    auto const old_group = members.group();
    auto const incarnation = members.incarnation_of("w3");

    auto const record = members.stop_last_within("c");
    REQUIRE_MESSAGE(record.at("state") == "succeeded", json::serialize(record.at("attempts")));
    REQUIRE(record.at("attempts").as_array().size() == 1);
    CHECK(members.survivors_hold("x", 7));
    for (int round = 0; round < 2; ++round) CHECK(members.run_again().at("state") == "succeeded");
    CHECK(members.survivors_hold("x", 7 * 9));

    // The coordinator is stopped, too, so that the continued process cannot have heard of a later epoch.
    cluster.coordinator.process.signal(SIGSTOP);
    late.process.signal(SIGCONT);
    auto const old_run = record.at("attempts").at(0).at("run").to_number<std::uint64_t>();
    auto const commit = late.post("/v1/runs/" + std::to_string(old_run) + "/commit", "");
    // Refused as a run that was aborted, or that has noticed first how its peers closed their connections.
    CHECK_MESSAGE((commit.status / 100 == 4 || commit.code() == "peer_lost"), commit.body);
    auto const refused = late.post("/v1/groups/g/all_reduce", call);
    CHECK_MESSAGE(refused.status == 409, refused.body);
    CHECK_MESSAGE(refused.code() == "epoch_fenced", refused.body);
    for (std::size_t i = 0; i < 3; ++i) {
      auto const replayed = cluster.worker(i).put("/v1/runs/987654321", order_of(old_group, 987654321, i));
      CHECK_MESSAGE(replayed.code() == "epoch_fenced", replayed.body);
    }
    for (auto const& answer : members.call_survivors()) CHECK_MESSAGE(answer.status == 200, answer.body);
    CHECK(members.survivors_hold("y", 7 * 27));
    CHECK(members.survivors_hold("x", 7 * 9));
    CHECK(late.tensor_version("x") == 1);
    CHECK(members.holds(late, "x", 8));

    cluster.coordinator.process.signal(SIGCONT);
    REQUIRE(eventually([&] { return members.stands_with(4); }));
    CHECK(members.incarnation_of("w3") == incarnation);
    CHECK(late.metric("chorus_lease_renewals_total{result=\"forgotten\"") == 1);
    auto const together = members.run_again();
    CHECK(together.at("state") == "succeeded");
    CHECK(members.survivors_hold("x", 7 * 27 + 8));
    CHECK(members.holds(late, "x", 7 * 27 + 8));
  }
}

TEST_CASE("a stopped member whose name a newer process has taken is fenced when it continues, and ends") {
  for (auto const* shm : {"on", "off"}) {
    INFO("shm " << shm);
    Members members(shm);
    auto& cluster = members.cluster;
    auto& old = cluster.worker(3);
    members.stop_last_within("c");
    auto& successor = cluster.add_worker("w3", "host=h0", members.flags);
    members.put(successor, 1000);
    REQUIRE(eventually([&] { return members.stands_with(4); }));
    CHECK(members.survivors_hold("x", 7));
    CHECK(members.run_again().at("state") == "succeeded");
    CHECK(members.survivors_hold("x", 1021));

    cluster.coordinator.process.signal(SIGSTOP);
    old.process.signal(SIGCONT);
    auto const refused = old.post("/v1/groups/g/all_reduce", call);
    CHECK_MESSAGE(refused.code() == "epoch_fenced", refused.body);
    CHECK(old.tensor_version("x") == 1);
    cluster.coordinator.process.signal(SIGCONT);
    CHECK(old.process.wait() == 1);

    CHECK(members.stands_with(4));
    CHECK(members.run_again().at("state") == "succeeded");
    CHECK(members.survivors_hold("x", 4084));
    CHECK(members.holds(successor, "x", 4084));
  }
}

TEST_CASE("two supervisors that start the same worker are reported") {
  Cluster cluster(1);
  auto const start = [&] {
    return std::make_unique<Service>(
        "twin", std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator",
                                         cluster.coordinator.url, "--id", "twin", "--log-level", "off"});
  };
  auto const cli = [&](std::string const& command) {
    Process process({binary("chorus"), "--coordinator", cluster.coordinator.url, command});
    auto text = process.read_all();
    return std::pair(process.wait(), std::move(text));
  };
  auto const twin = [&] { return cluster.coordinator.get("/v1/workers/twin").json(); };
  auto holder = start();
  REQUIRE(eventually([&] { return holder->get("/readyz").status == 200; }));
  CHECK(cli("doctor").first == 0);
  for (int taken = 1; taken <= 3; ++taken) {
    auto next = start();
    REQUIRE(eventually([&] { return next->get("/readyz").status == 200; }));
    CHECK(twin().at("takeovers").to_number<int>() == taken);
    CHECK(holder->process.wait() == 1);  // a supervisor would start a new one
    holder = std::move(next);
  }
  CHECK(twin().at("rivals").as_array().size() >= 2);
  CHECK(cluster.coordinator.metric("chorus_worker_takeovers_total") == 3);
  CHECK(cli("status").second.find("worker twin changed hands 3 times within a minute") != std::string::npos);
  auto const [status, found] = cli("doctor");
  CHECK(status == 1);
  CHECK(found.find("problem: worker twin: its name changed hands 3 times within a minute") != std::string::npos);
}
