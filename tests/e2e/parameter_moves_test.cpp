// Shards move during pushes because workers join and leave: every push counts once.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <map>

#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t elements = 50'000;

std::string name_of(std::size_t parameter) { return "p" + std::to_string(parameter); }

void make(Cluster& cluster, std::size_t parameters, std::string const& more) {
  for (std::size_t i = 0; i < parameters; ++i) {
    auto const answer = cluster.coordinator.put("/v1/parameters/" + name_of(i),
                                                R"({"group":"g","shape":[50000],"shards":1)" + more + "}");
    REQUIRE_MESSAGE(answer.status == 201, answer.body);
  }
}

// Returns the number of shards that a worker has in this role.
std::size_t held_by(Cluster& cluster, std::string const& worker, std::string const& role) {
  std::size_t count = 0;
  auto const list = cluster.coordinator.get("/v1/parameters").json();
  for (auto const& parameter : list.at("items").as_array())
    for (auto const& endpoint : parameter.at("endpoints").as_array())
      count += endpoint.at("worker").as_string() == std::string_view(worker) &&
               endpoint.at("role").as_string() == std::string_view(role);
  return count;
}

bool all_are_ready(Cluster& cluster) {
  auto const list = cluster.coordinator.get("/v1/parameters").json();
  for (auto const& parameter : list.at("items").as_array())
    if (parameter.at("state") != "ready") return false;
  return true;
}

// One client per parameter, which pushes ones through one worker until told to stop.
class Load {
 public:
  Load(std::string entry, std::size_t parameters) : counts_(parameters) {
    for (std::size_t i = 0; i < parameters; ++i)
      clients_.push_back(std::async(std::launch::async, [this, entry, i] {
        ParameterClient client(entry, "c" + std::to_string(i));
        auto const ones = ParameterClient::bytes(Floats(elements, 1));
        while (!ends_) {
          auto const answer = client.push(name_of(i), ones);
          if (answer.status != 200) throw std::runtime_error("a push was refused: " + answer.body);
          ++counts_[i];
        }
      }));
  }
  ~Load() { ends_ = true; }
  Load(Load const&) = delete;
  Load& operator=(Load const&) = delete;

  // Waits until each client has pushed some more.
  bool goes_on() {
    std::vector<std::uint64_t> before;
    for (auto const& count : counts_) before.push_back(count);
    return eventually(
        [&] {
          for (std::size_t i = 0; i < counts_.size(); ++i)
            if (counts_[i] < before[i] + 3) return false;
          return true;
        },
        std::chrono::seconds(30));
  }
  void stop() {
    ends_ = true;
    for (auto& client : clients_) client.get();
  }
  [[nodiscard]] float count(std::size_t parameter) const { return static_cast<float>(counts_[parameter]); }

 private:
  std::atomic<bool> ends_ = false;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::vector<std::future<void>> clients_;
};

void check_sums(Service const& entry, Load const& load, std::size_t parameters) {
  ParameterClient const reader(entry.url, "reader");
  for (std::size_t i = 0; i < parameters; ++i) {
    auto const answer = reader.pull(name_of(i));
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    CHECK((ParameterClient::values<float>(answer.body) == Floats(elements, load.count(i))));
  }
}

}  // namespace

TEST_CASE("a worker that joins becomes the owner of its share during pushes, with and without backups") {
  for (auto const* const replicas : {"1", "2"}) {
    CAPTURE(replicas);
    Cluster cluster(2);
    cluster.make_group("g");
    make(cluster, 6, std::string(R"(,"replicas":)") + replicas);
    Load load(cluster.worker(0).url, 6);
    CHECK(load.goes_on());
    cluster.add_worker("w2", "host=h2");
    cluster.make_group("g");
    CHECK(eventually([&] { return held_by(cluster, "w2", "owner") >= 2 && all_are_ready(cluster); },
                     std::chrono::seconds(60)));
    CHECK(load.goes_on());
    load.stop();
    check_sums(cluster.worker(2), load, 6);
    CHECK(held_by(cluster, "w0", "owner") + held_by(cluster, "w1", "owner") + held_by(cluster, "w2", "owner") == 6);
  }
}

TEST_CASE("a worker that gets SIGTERM first hands its shards over without loss, with and without backups") {
  Cluster cluster(3);
  cluster.make_group("g");
  make(cluster, 3, "");
  REQUIRE(held_by(cluster, "w1", "owner") == 1);
  Load load(cluster.worker(0).url, 3);
  CHECK(load.goes_on());
  cluster.worker(1).process.signal(SIGTERM);
  CHECK(cluster.worker(1).process.wait(std::chrono::seconds(30)) == 0);
  CHECK(load.goes_on());
  load.stop();
  CHECK(all_are_ready(cluster));
  CHECK(held_by(cluster, "w1", "owner") == 0);
  check_sums(cluster.worker(2), load, 3);
}

TEST_CASE(
    "one large parameter in a group that grows from two to four workers is spread evenly by bytes during pushes") {
  Cluster cluster(2);
  cluster.make_group("g");
  constexpr std::size_t large = 16 << 20;  // elements: 64 MiB
  REQUIRE(cluster.coordinator.put("/v1/parameters/p0", R"({"group":"g","shape":[16777216]})").status == 201);
  std::atomic<bool> ends = false;
  std::atomic<std::uint64_t> count = 0;
  auto pushing = std::async(std::launch::async, [&] {
    ParameterClient client(cluster.worker(0).url, "c");
    auto const ones = ParameterClient::bytes(Floats(large, 1));
    while (!ends) {
      auto said = client.push("p0", ones);
      // Pieces of the push have reached a former owner. Other shards may have taken the push, so that even the last one
      // must be repeated.
      while (said.status == 409 && said.json().at("code") == "out_of_order") said = client.push("p0", ones);
      REQUIRE_MESSAGE(said.status == 200, said.body);
      ++count;
    }
  });
  cluster.add_worker("w2", "host=h2");
  cluster.add_worker("w3", "host=h3");
  REQUIRE(cluster.coordinator.put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"]})").status == 200);
  auto const is_balanced = [&] {
    for (auto const* const worker : {"w0", "w1", "w2", "w3"})
      if (held_by(cluster, worker, "owner") != 2) return false;
    return true;
  };
  CHECK(eventually(is_balanced, std::chrono::seconds(60)));
  ends = true;
  pushing.get();
  auto const values = ParameterClient::values<float>(ParameterClient(cluster.worker(3).url, "r").pull("p0").body);
  CHECK((values == Floats(large, static_cast<float>(count))));
}

TEST_CASE("a shard moves no faster than its limit, and accepts pushes meanwhile") {
  using std::chrono::steady_clock;
  constexpr int shard_mib = 4;
  std::vector<std::string> const a_mib_per_second{"--fill-bytes-per-second", "1048576"};
  Cluster cluster(0);
  cluster.add_worker("w0", "host=h0", a_mib_per_second);
  cluster.make_group("g");
  for (auto const* const name : {"p0", "p1"})
    REQUIRE(cluster.coordinator
                .put(std::string("/v1/parameters/") + name,
                     R"({"group":"g","shards":1,"shape":[)" + std::to_string(shard_mib << 18) + "]}")
                .status == 201);
  cluster.add_worker("w1", "host=h1", a_mib_per_second);
  auto const begin = steady_clock::now();
  cluster.make_group("g");
  auto const ones = ParameterClient::bytes(Floats(shard_mib << 18, 1));
  std::map<std::string, ParameterClient> clients;
  for (auto const* const name : {"p0", "p1"}) clients.emplace(name, ParameterClient(cluster.worker(0).url, name));
  std::uint64_t pushes = 0;
  while (held_by(cluster, "w1", "owner") == 0 && steady_clock::now() < begin + std::chrono::seconds(60)) {
    for (auto& [name, client] : clients) {
      auto const said = client.push(name, ones);
      REQUIRE_MESSAGE(said.status == 200, said.body);
    }
    ++pushes;
  }
  CHECK(held_by(cluster, "w1", "owner") == 1);
  CHECK(steady_clock::now() - begin >= std::chrono::seconds(shard_mib));
  CHECK(pushes >= 5);
  for (auto const& [name, client] : clients)
    CHECK((ParameterClient::values<float>(client.pull(name).body) ==
           Floats(shard_mib << 18, static_cast<float>(pushes))));
}
