// Checkpoints of a parameter server: written by real workers, loaded by others.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/support/parameters.hpp"

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

// Workers that keep their checkpoints in one directory, as group "g".
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

TEST_CASE("all workers die: what a checkpoint has goes on elsewhere, with any number of shards, each push once") {
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

TEST_CASE("a checkpoint with a flipped byte is not used; the one before it is") {
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

TEST_CASE("checkpoints that cannot be") {
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
