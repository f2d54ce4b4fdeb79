// `durability: log`: an owner is killed during pushes and restarted with its disk, and every acknowledged push counts
// once.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "tests/support/fleets/parameters.hpp"
#include "tests/support/held_port.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;

namespace {

namespace files = std::filesystem;
using Floats = std::vector<float>;
constexpr std::size_t elements = 1000;

// A coordinator, and several workers, one after another, with the same name, port and directory.
class Shop {
 public:
  explicit Shop(std::string const& parameter = R"({"group":"g","shape":[1000],"shards":2,"durability":"log"})")
      : coordinator_("coordinator", {binary("chorus-coordinator"), "--port", "0", "--log-level", "error"}) {
    files::create_directory(logs());
    start();
    auto const group = coordinator_.put("/v1/groups/g", R"({"size":1})");
    REQUIRE_MESSAGE(group.status == 201, group.body);
    auto const made = coordinator_.put("/v1/parameters/w", parameter);
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }

  void start() { start_with({"--log-directory", logs(), "--log-snapshot-bytes", "65536"}); }
  void start_with(std::vector<std::string> const& flags) {
    std::vector<std::string> arguments{
        binary("chorus-worker"), "--port", port_.text(), "--coordinator", coordinator_.url, "--id", "w0",
        "--log-level",           "error"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    worker_ = std::make_unique<Service>("w0", std::move(arguments));
    REQUIRE(eventually([&] { return worker().get("/readyz").status == 200; }));
  }
  void kill() {
    worker().process.signal(SIGKILL);
    worker().process.wait();
  }
  [[nodiscard]] std::string state() { return text_of("state"); }
  [[nodiscard]] std::string why() { return text_of("why"); }
  [[nodiscard]] bool is_ready() { return state() == "ready"; }

  Service& worker() { return *worker_; }
  Service& coordinator() { return coordinator_; }
  [[nodiscard]] std::string logs() const { return directory_ / "logs"; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + port_.text(); }
  Floats values() {
    auto const answer = ParameterClient(worker().url, "reader").pull("w");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return ParameterClient::values<float>(answer.body);
  }

 private:
  std::string text_of(char const* field) {
    auto const parameter = coordinator_.get("/v1/parameters/w").json();
    auto const* const text = parameter.as_object().if_contains(field);
    return text == nullptr ? "" : std::string(text->as_string());
  }
  ScratchDirectory const directory_;
  HeldPort const port_;
  Service coordinator_;
  std::unique_ptr<Service> worker_;
};

// Clients that push ones until told to end. A push without acknowledgement is repeated unchanged until it is
// acknowledged.
class Trainers {
 public:
  explicit Trainers(std::string const& url) {
    for (int c = 0; c < 3; ++c)
      clients_.push_back(std::async(std::launch::async, [this, url, c] {
        ParameterClient client(url, "c" + std::to_string(c));
        auto const ones = ParameterClient::bytes(Floats(elements, 1));
        while (!ends_) {
          while (!is_acknowledged(client, ones)) pause_briefly();
          ++acknowledged_;
        }
      }));
  }
  ~Trainers() { ends_ = true; }
  Trainers(Trainers const&) = delete;
  Trainers& operator=(Trainers const&) = delete;

  bool go_on(std::uint64_t pushes) {
    auto const before = acknowledged_.load();
    return eventually([&] { return acknowledged_ > before + pushes; }, std::chrono::seconds(60));
  }
  std::uint64_t stop() {
    ends_ = true;
    for (auto& client : clients_) client.get();
    return acknowledged_;
  }

 private:
  static bool is_acknowledged(ParameterClient& client, std::string const& bytes) {
    try {
      return client.push("w", bytes).status == 200;
    } catch (std::runtime_error const&) { return false; }  // the worker has died
  }
  std::atomic<bool> ends_ = false;
  std::atomic<std::uint64_t> acknowledged_ = 0;
  std::vector<std::future<void>> clients_;
};

void flip_a_byte(std::string const& below, std::string const& prefix) {
  for (auto const& entry : files::recursive_directory_iterator(below)) {
    if (!entry.is_regular_file() || !entry.path().filename().string().starts_with(prefix)) continue;
    auto content = content_of(entry.path());
    content.at(content.size() / 2) = static_cast<char>(content.at(content.size() / 2) ^ 1);
    write_file(entry.path(), content);
  }
}

}  // namespace

TEST_CASE("a sole owner that is killed during pushes again and again loses no push and counts none twice") {
  Shop shop;
  Trainers trainers(shop.url());
  for (int life = 0; life < 4; ++life) {
    CHECK(trainers.go_on(40));
    shop.kill();
    shop.start();
  }
  CHECK(trainers.go_on(10));
  auto const sum = static_cast<float>(trainers.stop());
  CHECK(shop.values() == Floats(elements, sum));
  CHECK(shop.is_ready());
}

TEST_CASE("a restarted owner has the same optimizer state, window and values, to the bit") {
  Shop shop(R"({"group":"g","shape":[1000],"durability":"log","optimizer":{"name":"adam"}})");
  ParameterClient client(shop.worker().url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  for (int i = 0; i < 5; ++i) REQUIRE(client.push("w", ones).status == 200);
  auto const before = shop.values();
  shop.kill();
  shop.start();
  REQUIRE(eventually([&] { return shop.is_ready(); }));
  CHECK(shop.values() == before);
  CHECK(client.repeat("w", ones, 4).json().at("duplicate") == true);
  CHECK(client.push("w", ones).json().at("version") == 6);
}

TEST_CASE("a log with a changed byte is refused by name, and is used once it is restored") {
  Shop shop;
  ParameterClient client(shop.worker().url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  for (int i = 0; i < 3; ++i) REQUIRE(client.push("w", ones).status == 200);
  shop.kill();
  flip_a_byte(shop.logs(), "log-");
  shop.start();
  auto const pulled = [&] { return ParameterClient(shop.worker().url, "reader").pull("w", {}, "?timeout_ms=500"); };
  CHECK(pulled().status != 200);
  CHECK(shop.state() == "unavailable");
  CHECK_MESSAGE(shop.why().find("log_damaged") != std::string::npos, shop.why());
  shop.kill();
  flip_a_byte(shop.logs(), "log-");
  shop.start();
  CHECK(eventually([&] { return shop.is_ready(); }));
  CHECK(shop.values() == Floats(elements, 3));
  // While a process that has read its log is silent, the coordinator waits for it.
  shop.kill();
  CHECK(eventually([&] { return shop.state() == "unavailable"; }));
  CHECK_MESSAGE(shop.why().find("which is silent") != std::string::npos, shop.why());
}

TEST_CASE(
    "a worker that restarts without its directory of logs keeps its shards unavailable, and the reason is shown") {
  Shop shop;
  ParameterClient client(shop.worker().url, "c");
  auto const ones = ParameterClient::bytes(Floats(elements, 1));
  for (int i = 0; i < 3; ++i) REQUIRE(client.push("w", ones).status == 200);
  shop.kill();
  shop.start_with({});
  CHECK(eventually([&] { return shop.why().find("was started without --log-directory") != std::string::npos; }));
  CHECK(shop.state() == "unavailable");
  shop.kill();
  shop.start();
  CHECK(eventually([&] { return shop.is_ready(); }));
  CHECK(shop.values() == Floats(elements, 3));
}

TEST_CASE(
    "a logged shard beyond a smaller memory limit waits and names both numbers, and is loaded under the larger limit") {
  Shop shop(R"({"group":"g","shape":[1000000],"shards":1,"durability":"log"})");
  ParameterClient client(shop.worker().url, "c");
  Floats const ones(1000000, 1);
  REQUIRE(client.push("w", ParameterClient::bytes(ones)).status == 200);
  shop.kill();
  shop.start_with({"--log-directory", shop.logs(), "--memory-limit-bytes", "2000000"});
  CHECK(eventually([&] { return shop.why().find("4000000") != std::string::npos; }));
  CHECK_MESSAGE(shop.why().find("2000000") != std::string::npos, shop.why());
  CHECK(shop.state() == "unavailable");
  shop.kill();
  shop.start();
  CHECK(eventually([&] { return shop.is_ready(); }));
  CHECK(shop.values() == ones);
}

TEST_CASE(
    "a backup that is killed before it hears that it is the owner leaves no gap: the log of the owner before counts") {
  ScratchDirectory const directory;
  Service const coordinator(
      "coordinator", {binary("chorus-coordinator"), "--port", "0", "--log-level", "error", "--lease-ms", "1000"});
  HeldPort const ports[2];
  std::unique_ptr<Service> workers[2];
  auto const start = [&](std::size_t i) {
    auto const id = "w" + std::to_string(i);
    files::create_directories(directory / id);
    workers[i] = std::make_unique<Service>(
        id,
        std::vector<std::string>{binary("chorus-worker"), "--port", ports[i].text(), "--coordinator", coordinator.url,
                                 "--id", id, "--log-directory", directory / id, "--log-level", "error"});
  };
  auto const kill = [&](std::size_t i) {
    workers[i]->process.signal(SIGKILL);
    workers[i]->process.wait();
  };
  auto const parameter = [&] { return coordinator.get("/v1/parameters/w").json(); };
  auto const owner = [&] { return parameter().at("endpoints").at(0).at("worker").as_string() == "w0" ? 0U : 1U; };
  start(0);
  start(1);
  REQUIRE(eventually([&] { return coordinator.put("/v1/groups/g", R"({"workers":["w0","w1"]})").status == 201; }));
  auto const made =
      coordinator.put("/v1/parameters/w", R"({"group":"g","shape":[1000],"shards":1,"replicas":2,"durability":"log"})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  auto const before = owner(), heir = 1 - before;
  ParameterClient client(workers[before]->url, "c");
  for (int i = 0; i < 5; ++i) REQUIRE(client.push("w", ParameterClient::bytes(Floats(elements, 1))).status == 200);
  workers[heir]->process.signal(SIGSTOP);
  kill(before);
  // Its clients miss the owner, so that the heir becomes it before its own lease ends.
  auto const incarnation = std::string(made.json().at("endpoints").at(0).at("incarnation").as_string());
  CHECK(eventually([&] {
    coordinator.get("/v1/parameters?limit=1&suspect=w" + std::to_string(before) + "&incarnation=" + incarnation);
    return owner() == heir;
  }));
  kill(heir);
  start(heir);
  start(before);
  Answer answer;
  CHECK(eventually(
      [&] {
        answer = ParameterClient(workers[before]->url, "reader").pull("w");
        return answer.status == 200;
      },
      std::chrono::seconds(30)));
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  CHECK(ParameterClient::values<float>(answer.body) == Floats(elements, 5));
}

TEST_CASE("a worker without a directory for logs is given no parameter with a log") {
  Cluster cluster(1);
  cluster.make_group("g");
  auto const made = cluster.coordinator.put("/v1/parameters/w", R"({"group":"g","shape":[4],"durability":"log"})");
  CHECK(made.code() == "unsupported");
  CHECK(made.body.find("--log-directory") != std::string::npos);
}

TEST_CASE("a deleted parameter leaves no log") {
  Shop shop;
  REQUIRE(shop.coordinator().erase("/v1/parameters/w").status == 204);
  auto const is_empty = [&] {
    for (auto const& entry : files::recursive_directory_iterator(shop.logs()))
      if (entry.is_regular_file()) return false;
    return true;
  };
  CHECK(eventually(is_empty));
}
