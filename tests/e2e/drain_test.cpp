// SIGTERM during work: the service is not ready first, current work ends well, streams end, the exit code is 0.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring","timeout_ms":20000})";
constexpr std::size_t large = 16 << 20;  // elements: long enough to be interrupted

void put_everywhere(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.size(); ++i)
    REQUIRE(cluster.worker(i).put_tensor("x", "f32", std::vector<float>(large, static_cast<float>(i + 1))).status ==
            201);
}

bool is_running(Cluster& cluster, std::string const& id) {
  return eventually([&] {
    auto const record = cluster.coordinator.get("/v1/collectives/" + id);
    return record.status == 200 && record.json().at("state") == "running";
  });
}

// GET /v1/events to its end, as text.
std::string events_of(std::string const& url, std::atomic<bool>& connected) {
  httplib::Client client(url);
  client.set_read_timeout(60);
  std::string text;
  client.Get("/v1/events", {{"Accept", "text/event-stream"}}, [&](char const* data, std::size_t size) {
    text.append(data, size);
    connected = true;
    return true;
  });
  return text;
}

}  // namespace

TEST_CASE("SIGTERM makes a coordinator finish its collectives, refuse new ones, end its streams and exit with 0") {
  ScratchDirectory const here;
  Cluster cluster(3, {}, {"--journal", here / "journal"});
  cluster.make_group("g");
  put_everywhere(cluster);
  std::atomic<bool> follows = false;
  std::string events;
  std::thread follower([&] { events = events_of(cluster.coordinator.url, follows); });
  REQUIRE(eventually([&] { return follows.load(); }));
  Answer answer;
  std::thread launch([&] { answer = cluster.coordinator.put("/v1/collectives/c?wait=30s", body); });
  REQUIRE(is_running(cluster, "c"));
  cluster.coordinator.process.signal(SIGTERM);
  bool was_refused = false, was_unready = false;
  try {
    was_unready = eventually([&] { return cluster.coordinator.get("/readyz").status == 503; });
    was_refused = cluster.coordinator.put("/v1/collectives/d", body).status == 503;
  } catch (std::runtime_error const&) {}  // the coordinator has ended
  launch.join();
  follower.join();
  CHECK(cluster.coordinator.process.wait() == 0);
  CHECK(was_unready);
  CHECK(was_refused);
  CHECK(answer.json().at("state") == "succeeded");
  CHECK(events.find("event: coordinator.stopping") < events.find("event: collective.succeeded"));
  CHECK(events.find("event: collective.succeeded") != std::string::npos);
  for (std::size_t i = 0; i < 3; ++i) CHECK(cluster.worker(i).tensor_version("x") == 2);
  CHECK_FALSE(content_of(here / "journal").empty());
}

TEST_CASE("SIGTERM makes a worker finish its part of a collective, leave, and exit with 0") {
  Cluster cluster(3);
  cluster.make_group("g");
  put_everywhere(cluster);
  Answer answer;
  std::thread launch([&] { answer = cluster.coordinator.put("/v1/collectives/c?wait=30s", body); });
  REQUIRE(is_running(cluster, "c"));
  cluster.worker(1).process.signal(SIGTERM);
  launch.join();
  CHECK(cluster.worker(1).process.wait() == 0);
  CHECK(answer.json().at("state") == "succeeded");
  CHECK(cluster.coordinator.get("/v1/workers/w1").status == 404);
  CHECK(cluster.coordinator.get("/v1/groups/g").json().at("state") == "degraded");
  CHECK(cluster.worker(0).get_tensor<float>("x") == std::vector<float>(large, 1 + 2 + 3));
}

namespace {

// The command line that runs these arguments with files of at most 512 bytes, as nohup starts them; standard error goes
// to standard output.
std::vector<std::string> with_small_files(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/bin/sh", "-c", "ulimit -f 1 && exec \"$0\" \"$@\" 2>&1"});
  return arguments;
}
std::vector<std::string> without_terminal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/bin/sh", "-c", "trap '' HUP && exec \"$0\" \"$@\""});
  return arguments;
}

std::vector<std::string> service(std::string const& program, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{binary(program), "--port", "0", "--log-level", "warn"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("a closed terminal ends a service like SIGTERM, unless the service ignores SIGHUP") {
  for (auto const* program : {"chorus-coordinator", "chorus-worker"}) {
    CAPTURE(program);
    Service leaving(program, service(program));
    leaving.process.signal(SIGHUP);
    leaving.process.signal(SIGHUP);  // one from the shell, one from the kernel
    CHECK(leaving.process.wait() == 0);
    Service staying(program, without_terminal(service(program)));
    staying.process.signal(SIGHUP);
    CHECK(staying.get("/livez").status == 200);
    staying.process.signal(SIGTERM);
    CHECK(staying.process.wait() == 0);
  }
}

TEST_CASE("a limit of the file size fails single writes, and ends no service") {
  ScratchDirectory const here;
  Process coordinator(with_small_files(service("chorus-coordinator", {"--journal", here / "journal"})));
  auto const said = coordinator.read_all();
  CHECK(coordinator.wait() == 1);
  CHECK(said.find("the journal " + (here / "journal")) != std::string::npos);
  CHECK(said.find("ulimit -f") != std::string::npos);

  Service worker("w", with_small_files(service("chorus-worker")));  // the region of its memory would be a larger file
  CHECK(worker.put_tensor("x", "u8", "100000", std::string(100000, 'x')).status == 201);

  Cluster cluster(1);
  CHECK(cluster.worker(0).put_tensor("x", "u8", "100000", std::string(100000, 'x')).status == 201);
  Process get(with_small_files({binary("chorus"), "--coordinator", cluster.coordinator.url, "tensors", "get", "x",
                                here / "x", "--worker", "w0"}));
  auto const why = get.read_all();
  CHECK(get.wait() == 1);
  CHECK(why.find("File too large") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(here / "x"));
  CHECK(std::filesystem::is_empty(here / ""));
}

TEST_CASE("under a limit of the file size checkpoints and logs name the file, and leave none half written") {
  ScratchDirectory const here;
  for (auto const* name : {"checkpoints", "logs"}) std::filesystem::create_directory(here / name);
  Service const coordinator("coordinator", service("chorus-coordinator"));
  Service const worker(
      "small", with_small_files(service("chorus-worker",
                                        {"--coordinator", coordinator.url, "--id", "small", "--checkpoint-directory",
                                         here / "checkpoints", "--log-directory", here / "logs"})));
  REQUIRE(eventually([&] { return coordinator.put("/v1/groups/g", R"({"workers":["small"]})").status == 201; }));
  REQUIRE(coordinator.put("/v1/parameters/p", R"({"group":"g","shape":[1000]})").status == 201);
  auto const refused = [&](Answer const& answer, std::string const& file) {
    INFO(answer.body);
    CHECK(answer.status == 503);
    CHECK(answer.body.find("cannot write " + file) != std::string::npos);
    CHECK(answer.body.find("File too large") != std::string::npos);
  };
  refused(coordinator.post("/v1/checkpoints", R"({"name":"c"})"), here / "checkpoints/c/");
  CHECK(std::filesystem::is_empty(here / "checkpoints"));
  auto const with_log = R"({"group":"g","shape":[1000],"durability":"log"})";
  refused(coordinator.put("/v1/parameters/l", with_log), here / "logs/l@0/");
  CHECK(worker.get("/livez").status == 200);
}
