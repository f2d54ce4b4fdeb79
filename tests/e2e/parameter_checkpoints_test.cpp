// Checkpoints of a parameter server: written by real workers, loaded by others.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <atomic>
#include <boost/json/parse.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
namespace files = std::filesystem;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (files::temp_directory_path() / "chorus-checkpoints-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path = name;
  }
  ~TemporaryDirectory() { files::remove_all(path); }
  TemporaryDirectory(TemporaryDirectory const&) = delete;
  TemporaryDirectory& operator=(TemporaryDirectory const&) = delete;
  files::path path;
};

// Starts workers with their checkpoints in one directory, as group "g".
std::unique_ptr<Cluster> start(std::size_t workers, files::path const& directory) {
  auto cluster = std::make_unique<Cluster>(0);
  for (std::size_t i = 0; i < workers; ++i)
    cluster->add_worker("w" + std::to_string(i), "host=h0", {"--checkpoint-directory", directory.string()});
  cluster->make_group("g");
  return cluster;
}

Answer make(Cluster& cluster, std::string const& request) {
  return cluster.coordinator.put("/v1/parameters/w", request);
}

Answer checkpoint(Cluster& cluster) { return cluster.coordinator.post("/v1/checkpoints", R"({"name":"c","keep":3})"); }

Floats values(Cluster& cluster) {
  auto const answer = ParameterClient(cluster.worker(0).url, "reader").pull("w");
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return ParameterClient::values<float>(answer.body);
}

Floats ramp(std::size_t count, float factor) {
  Floats all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = factor * static_cast<float>(i % 97);
  return all;
}

std::string const adam = R"("group":"g","shape":[1000,7],"optimizer":{"name":"adam"})";

}  // namespace

TEST_CASE(
    "after the death of all workers a checkpoint continues elsewhere with any number of shards, and each push counts "
    "once") {
  TemporaryDirectory const directory;
  auto const gradient = [](int i) { return ParameterClient::bytes(ramp(7000, static_cast<float>(i + 1))); };
  Floats expected;
  {
    auto const cluster = start(3, directory.path);
    REQUIRE(make(*cluster, "{" + adam + R"(,"shards":3})").status == 201);
    ParameterClient client(cluster->worker(0).url, "trainer");
    for (int i = 0; i < 3; ++i) REQUIRE(client.push("w", gradient(i)).status == 200);
    auto const made = checkpoint(*cluster);
    REQUIRE_MESSAGE(made.status == 201, made.body);
    CHECK(made.json().at("number") == 1);
    CHECK(made.json().at("files") == 3);
    REQUIRE(client.push("w", gradient(3)).status == 200);
    expected = values(*cluster);
  }
  for (auto const* const shards : {"1", "2", "3", "5"}) {
    CAPTURE(shards);
    auto const cluster = start(2, directory.path);
    auto const made =
        make(*cluster, "{" + adam + R"(,"checkpoint":{"name":"c"},"replicas":2,"shards":)" + shards + "}");
    REQUIRE_MESSAGE(made.status == 201, made.body);
    ParameterClient const client(cluster->worker(1).url, "trainer");
    CHECK(client.repeat("w", gradient(2), 2).json().at("duplicate") == true);
    CHECK(client.repeat("w", gradient(3), 3).json().at("version") == 4);
    CHECK(values(*cluster) == expected);
  }
}

namespace {

std::string content(files::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the files of a checkpoint tell other readers the rows of a parameter, and the manifest how it was made") {
  TemporaryDirectory const directory;
  auto const cluster = start(2, directory.path);
  REQUIRE(make(*cluster, "{" + adam + R"(,"shards":2,"nonfinite":"zero"})").status == 201);
  REQUIRE(checkpoint(*cluster).status == 201);
  auto const checkpoint = directory.path / "c/checkpoint-000000000001";
  std::uint64_t rows = 0;
  for (auto const* const name : {"w0.safetensors", "w1.safetensors"}) {
    auto const file = content(checkpoint / name);
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    auto const shape = boost::json::parse(file.substr(sizeof header, header)).at("w").at("shape").as_array();
    REQUIRE(shape.size() == 2);
    CHECK(shape[1] == 7);
    rows += shape[0].to_number<std::uint64_t>();
  }
  CHECK(rows == 1000);
  auto const manifest = boost::json::parse(content(checkpoint / "manifest.json"));
  auto const metadata = boost::json::parse(std::string(manifest.at("parameters").at(0).at("metadata").as_string()));
  CHECK(metadata.at("optimizer").at("name") == "adam");
  CHECK(metadata.at("nonfinite") == "zero");
}

namespace {

// Clients that push ones to "w" until told to stop, each through another worker.
class Pushers {
 public:
  Pushers(Cluster& cluster, std::size_t clients, std::size_t elements, bool in_clocks) {
    for (std::size_t i = 0; i < clients; ++i)
      clients_.push_back(std::async(std::launch::async, [this, &cluster, i, elements, in_clocks] {
        ParameterClient client(cluster.worker(i % cluster.size()).url, "c" + std::to_string(i));
        auto const ones = ParameterClient::bytes(Floats(elements, 1));
        for (std::uint64_t clock = 0; clock <= last_clock_; ++clock) {
          auto const answer = client.push("w", ones, in_clocks ? std::optional(clock) : std::nullopt);
          if (answer.status != 200) throw std::runtime_error("a push was refused: " + answer.body);
          ++count_;
        }
      }));
  }
  ~Pushers() { last_clock_ = 0; }
  Pushers(Pushers const&) = delete;
  Pushers& operator=(Pushers const&) = delete;

  bool go_on() const {
    auto const before = count_.load();
    return eventually([&] { return count_ >= before + 10; }, std::chrono::seconds(30));
  }
  // All stop at the same clock, so that none waits for one that has stopped.
  void stop() {
    last_clock_ = count_ / clients_.size() + 4;
    for (auto& client : clients_) client.get();
  }

 private:
  std::atomic<std::uint64_t> last_clock_ = UINT64_MAX;
  std::atomic<std::uint64_t> count_ = 0;
  std::vector<std::future<void>> clients_;
};

// The states of all shards of "w" in a manifest.
std::vector<std::string> states_in(files::path const& checkpoint) {
  std::ifstream file(checkpoint / "manifest.json");
  std::string const text{std::istreambuf_iterator<char>(file), {}};
  auto const manifest = boost::json::parse(text);
  std::vector<std::string> states;
  for (auto const& written : manifest.at("files").as_array())
    for (auto const& shard : written.at("shards").as_array()) states.emplace_back(shard.at("metadata").as_string());
  return states;
}

files::path checkpoint_directory(files::path const& directory, std::uint64_t number) {
  auto const digits = std::to_string(number);
  return directory / "c" / ("checkpoint-" + std::string(12 - digits.size(), '0') + digits);
}

}  // namespace

TEST_CASE("a request for a parameter that was recreated with other shards is answered soon") {
  TemporaryDirectory const directory;
  auto const cluster = start(2, directory.path);
  REQUIRE(make(*cluster, R"({"group":"g","shape":[8],"shards":4})").status == 201);
  CHECK(values(*cluster) == Floats(8));
  REQUIRE(cluster->coordinator.erase("/v1/parameters/w").status == 204);
  REQUIRE(make(*cluster, R"({"group":"g","shape":[8],"shards":2})").status == 201);
  auto const begun = std::chrono::steady_clock::now();
  auto const first = ParameterClient(cluster->worker(0).url, "reader").pull("w");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));
  CHECK((first.status == 200 || first.code() == "unavailable"));
  CHECK(values(*cluster) == Floats(8));
}

TEST_CASE("a checkpoint during pushes is one state of the parameter, and is loaded with any number of shards") {
  for (auto const* const staleness : {"-1", "0", "2"}) {
    CAPTURE(staleness);
    TemporaryDirectory const directory;
    auto const cluster = start(3, directory.path);
    auto const request = std::string(R"({"group":"g","shape":[9000],"clients":["c0","c1","c2"],"staleness":)") +
                         staleness + (std::string_view(staleness) == "-1" ? R"(,"replicas":2)" : "");
    REQUIRE(make(*cluster, request + R"(,"shards":6})").status == 201);
    std::uint64_t last = 0;
    {
      Pushers pushers(*cluster, 3, 9000, std::string_view(staleness) != "-1");
      for (int i = 0; i < 4; ++i) {
        REQUIRE(pushers.go_on());
        auto const made = checkpoint(*cluster);
        REQUIRE_MESSAGE(made.status == 201, made.body);
        CHECK(made.json().at("unaligned").as_array().empty());
        last = made.json().at("number").to_number<std::uint64_t>();
        auto const states = states_in(checkpoint_directory(directory.path, last));
        REQUIRE(states.size() == 6);
        for (auto const& state : states) CHECK(state == states.front());
      }
      CHECK(pushers.go_on());
      pushers.stop();
    }
    // Every push counts in every element: no optimizer, gradients of one.
    auto const state = boost::json::parse(states_in(checkpoint_directory(directory.path, last)).front());
    auto const pushes = state.at("position").to_number<float>();
    CHECK(pushes >= 10);
    for (auto const* const shards : {"6", "1", "4"}) {
      auto const other = start(2, directory.path);
      auto const loaded = make(*other, request + R"(,"checkpoint":{"name":"c"},"shards":)" + shards + "}");
      REQUIRE_MESSAGE(loaded.status == 201, loaded.body);
      CHECK(values(*other) == Floats(9000, pushes));
    }
  }
}

TEST_CASE("a client that died between two shards delays one checkpoint, which is marked as unaligned") {
  TemporaryDirectory const directory;
  auto const cluster = start(2, directory.path);
  auto const made = make(*cluster, R"({"group":"g","shape":[8],"shards":2})");
  REQUIRE(made.status == 201);
  ParameterClient client(cluster->worker(0).url, "alive");
  REQUIRE(client.push("w", ParameterClient::bytes(Floats(8, 1))).status == 200);
  CHECK(checkpoint(*cluster).json().at("unaligned").as_array().empty());
  // The other shard never hears of this client.
  auto const parameter = made.json();
  auto const& owner = parameter.at("endpoints").at(0);
  ParameterClient const dead(std::string(owner.at("url").as_string()), "dead");
  auto const half = dead.post("/v1/parameters/w/gradient?shard=0", ParameterClient::bytes(Floats(4, 1)),
                              {{"Chorus-Client", "dead"}, {"Chorus-Sequence", "0"}});
  REQUIRE_MESSAGE(half.status == 200, half.body);
  auto const torn = checkpoint(*cluster).json();
  CHECK(torn.at("unaligned").at(0) == "w");
  CHECK(torn.at("seconds").as_double() >= 1.9);
  auto const again = checkpoint(*cluster).json();
  CHECK(again.at("unaligned").at(0) == "w");
  CHECK(again.at("seconds").as_double() < 1.9);
  CHECK(client.push("w", ParameterClient::bytes(Floats(8, 1))).status == 200);
}

TEST_CASE("a checkpoint with a changed byte is not used, and the one before it is") {
  TemporaryDirectory const directory;
  auto const cluster = start(1, directory.path);
  REQUIRE(make(*cluster, R"({"group":"g","shape":[4]})").status == 201);
  ParameterClient client(cluster->worker(0).url, "c");
  for (int i = 0; i < 2; ++i) {
    client.push("w", ParameterClient::bytes(Floats(4, 1)));
    REQUIRE(checkpoint(*cluster).status == 201);
  }
  files::path newest;
  for (auto const& entry : files::recursive_directory_iterator(directory.path))
    if (entry.path().extension() == ".safetensors") newest = std::max(newest, entry.path());
  {
    std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  REQUIRE(cluster->coordinator.erase("/v1/parameters/w").status == 204);
  auto const damaged = make(*cluster, R"({"group":"g","shape":[4],"checkpoint":{"name":"c","number":2}})");
  CHECK(damaged.code() == "digest_mismatch");
  CHECK(damaged.body.find(newest.filename().string()) != std::string::npos);
  CHECK(make(*cluster, R"({"group":"g","shape":[4],"checkpoint":{"name":"c"}})").status == 201);
  CHECK(values(*cluster) == Floats(4, 1));
}

TEST_CASE(
    "a scheduled checkpoint that a lost parameter stops is counted as failed; one without parameters is needless") {
  TemporaryDirectory const directory;
  Cluster cluster(0, {}, {"--checkpoint", "auto", "--checkpoint-interval-s", "1"});
  for (auto const* const id : {"w0", "w1"})
    cluster.add_worker(id, "host=h0", {"--checkpoint-directory", directory.path.string()});
  cluster.make_group("g");
  auto const counted = [&](std::string const& result) {
    return cluster.coordinator.metric("chorus_checkpoint_duration_seconds_count{result=\"" + result + "\"}");
  };
  auto const time = [&] { return cluster.coordinator.metric("chorus_checkpoint_timestamp_seconds"); };
  CHECK(cluster.coordinator.metric("chorus_checkpoint_schedule_timestamp_seconds") > 0);
  CHECK(eventually([&] { return time() > 0; }, std::chrono::seconds(30)));
  CHECK(counted("succeeded") == 0);
  CHECK(counted("failed") == 0);

  auto const made = make(cluster, R"({"group":"g","shape":[8],"shards":1})");
  REQUIRE(made.status == 201);
  CHECK(eventually([&] { return counted("succeeded") > 0; }, std::chrono::seconds(30)));
  CHECK(counted("failed") == 0);

  auto const owner = std::string(made.json().at("endpoints").at(0).at("worker").as_string());
  cluster.kill_worker(owner == "w0" ? 0 : 1);
  CHECK(eventually([&] { return counted("failed") > 0; }, std::chrono::seconds(60)));
}

TEST_CASE("a checkpoint is loaded with shards that cut rows, unless single rows of it were pushed") {
  TemporaryDirectory const directory;
  auto const cluster = start(2, directory.path);
  std::string const narrow = R"({"group":"g","shape":[2,6],"optimizer":{"name":"adam"},"shards":)";
  std::string const cut = narrow + R"(4,"checkpoint":{"name":"c"}})";
  REQUIRE(make(*cluster, narrow + "2}").status == 201);
  ParameterClient client(cluster->worker(0).url, "a");
  auto const gradient = ParameterClient::bytes(ramp(12, 1));
  REQUIRE(client.push("w", gradient).status == 200);
  REQUIRE(checkpoint(*cluster).status == 201);
  REQUIRE(client.push("w", gradient).status == 200);
  auto const expected = values(*cluster);
  REQUIRE(cluster->coordinator.erase("/v1/parameters/w").status == 204);
  auto const made = make(*cluster, cut);
  REQUIRE_MESSAGE(made.status == 201, made.body);
  // The worker knew the former parameter, and says so once.
  CHECK(eventually([&] { return client.repeat("w", gradient, 1).status == 200; }));
  CHECK(values(*cluster) == expected);
  REQUIRE(cluster->coordinator.erase("/v1/parameters/w").status == 204);

  REQUIRE(make(*cluster, narrow + "2}").status == 201);
  auto const one_row = ParameterClient::bytes(std::vector<std::uint64_t>{1}) + ParameterClient::bytes(ramp(6, 1));
  httplib::Headers const of_one_row{{"Chorus-Client", "b"}, {"Chorus-Sequence", "0"}, {"Chorus-Rows", "1"}};
  CHECK(eventually([&] { return client.post("/v1/parameters/w/rows/gradient", one_row, of_one_row).status == 200; }));
  REQUIRE(checkpoint(*cluster).status == 201);
  REQUIRE(cluster->coordinator.erase("/v1/parameters/w").status == 204);
  auto const refused = make(*cluster, cut);
  CHECK(refused.code() == "mismatch");
  CHECK_MESSAGE(refused.body.find("single rows of w were pushed") != std::string::npos, refused.body);
}

TEST_CASE("values of a checkpoint go on under another optimizer, which begins with them") {
  TemporaryDirectory const directory;
  constexpr std::uint16_t one = 0x3f80, half = 0x3f00;  // of bf16
  using Halves = std::vector<std::uint16_t>;
  {
    auto const cluster = start(1, directory.path);
    REQUIRE(make(*cluster, R"({"group":"g","shape":[4],"dtype":"bf16"})").status == 201);
    ParameterClient client(cluster->worker(0).url, "a");
    REQUIRE(client.push("w", ParameterClient::bytes(Halves(4, one))).status == 200);
    REQUIRE(checkpoint(*cluster).status == 201);
  }
  auto const cluster = start(1, directory.path);
  auto const made = make(*cluster, R"({"group":"g","shape":[4],"dtype":"bf16","checkpoint":{"name":"c"},)"
                                   R"("optimizer":{"name":"sgd","learning_rate":1}})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  ParameterClient const client(cluster->worker(0).url, "a");
  REQUIRE(client.repeat("w", ParameterClient::bytes(Halves(4, half)), 1).status == 200);
  CHECK(ParameterClient::values<std::uint16_t>(client.pull("w").body) == Halves(4, half));
}

TEST_CASE("a coordinator whose checkpoint could not be written by its name does not start") {
  Process process({"/bin/sh", "-c", binary("chorus-coordinator") + " --port 0 --checkpoint a/b 2>&1"});
  auto const said = process.read_all();
  CHECK(process.wait() == 2);
  CHECK_MESSAGE(said.find("the checkpoint 'a/b' is not 1 to 64 letters") != std::string::npos, said);
}

TEST_CASE("invalid requests for checkpoints are refused") {
  TemporaryDirectory const directory;
  auto const cluster = start(1, directory.path);
  CHECK(checkpoint(*cluster).code() == "unknown_parameter");
  CHECK(make(*cluster, R"({"group":"g","shape":[4],"checkpoint":{"name":"c"}})").code() == "not_found");
  CHECK(make(*cluster, R"({"group":"g","shape":[4]})").status == 201);
  CHECK(cluster->coordinator.post("/v1/checkpoints", R"({"name":"../c"})").code() == "invalid_field");
  CHECK(checkpoint(*cluster).status == 201);
  CHECK(cluster->coordinator.erase("/v1/parameters/w").status == 204);
  CHECK(make(*cluster, R"({"group":"g","shape":[5],"checkpoint":{"name":"c"}})").code() == "mismatch");
  Cluster without(1);
  without.make_group("g");
  CHECK(make(without, R"({"group":"g","shape":[4]})").status == 201);
  CHECK(checkpoint(without).code() == "unsupported");
}
