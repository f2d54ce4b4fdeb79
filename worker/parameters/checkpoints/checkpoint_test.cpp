#include "worker/parameters/checkpoints/checkpoint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/support/process.hpp"
#include "worker/parameters/checkpoints/digests.hpp"
#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/testing/content.hpp"
#include "worker/parameters/checkpoints/testing/simulated_disk.hpp"
#include "worker/parameters/checkpoints/testing/temporary_directory.hpp"

using namespace chorus;
using namespace chorus::checkpoints;
using chorus::checkpoints::testing::Content;
using chorus::checkpoints::testing::SimulatedDisk;
using chorus::checkpoints::testing::TemporaryDirectory;

namespace {

constexpr auto* first_directory = "disk/checkpoint-000000000001/";

SimulatedDisk disk_with(std::uint64_t checkpoints, std::uint64_t shards = 2) {
  SimulatedDisk disk;
  for (std::uint64_t number = 1; number <= checkpoints; ++number)
    REQUIRE(Content(number).write(disk, "disk", number, shards).has_value());
  return disk;
}

std::vector<std::uint64_t> numbers_in(SimulatedDisk& disk) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 1; number < 10; ++number)
    if (Checkpoint::open(disk, "disk", number).has_value()) numbers.push_back(number);
  return numbers;
}

// A disk on which somebody removes the empty directory in which a file is to be created.
struct SweptDisk : SimulatedDisk {
  int sweeps = 0;
  Result<std::unique_ptr<OutputFile>> create(std::string const& path) override {
    if (sweeps-- > 0) CHECK(remove_directory(path.substr(0, path.rfind('/'))).has_value());
    return SimulatedDisk::create(path);
  }
};

std::string page(std::string const& name) {
  std::ostringstream stream;
  stream << std::ifstream(std::string(CHORUS_SOURCE_DIR) + "/docs/reference/" + name).rdbuf();
  return stream.str();
}

// The checkpoint of docs/reference/checkpoints.md.
Status write_example(Files& files, std::string const& directory) {
  std::array<float, 4> const values{1, -2, 0.5F, 0}, momentum{0.25F, 0, 0, -1};
  std::vector<ShardContent> const shards{{"w",
                                          0,
                                          4,
                                          {{"values", Dtype::f32, 1, std::as_bytes(std::span(values))},
                                           {"momentum", Dtype::f32, 1, std::as_bytes(std::span(momentum))}},
                                          R"({"version":3})",
                                          {2, 2}}};
  auto const record = write_file(files, directory, 1, "worker-a", shards);
  if (record.has_error()) return record.error();
  Manifest manifest;
  manifest.number = 1;
  manifest.parameters = {{"w", "f32", {2, 2}, R"({"optimizer":{"name":"momentum"}})"}};
  manifest.files = {*record};
  return commit(files, directory, manifest);
}

}  // namespace

TEST_CASE("a checkpoint of any number of shards is read as any other number") {
  for (std::uint64_t written : {1, 2, 3, 5, 24})
    for (std::uint64_t read : {1, 2, 4, 7, 24}) {
      SimulatedDisk disk;
      REQUIRE(Content(9).write(disk, "disk", 1, written).has_value());
      auto const checkpoint = Checkpoint::open(disk, "disk", 1, Verify::sha256).value();
      CHECK(Content(9).is_in(checkpoint, read));
      CHECK_FALSE(Content(8).is_in(checkpoint, read));
      CHECK(checkpoint.shards("weights", 0, 120).size() == written);
    }
}

TEST_CASE("a checkpoint lists its parameters, arrays and shards") {
  auto disk = disk_with(1, 3);
  auto const checkpoint = Checkpoint::open(disk, "disk", 1).value();
  CHECK(checkpoint.arrays("weights") == std::vector<std::string>{"momentum", "row_steps", "values", "window"});
  CHECK(checkpoint.arrays("bias") == std::vector<std::string>{"values"});
  CHECK(checkpoint.find("weights")->shape == std::vector<std::uint64_t>{24, 5});
  CHECK(checkpoint.find("other") == nullptr);
  auto const shards = checkpoint.shards("weights", 40, 41);
  REQUIRE(shards.size() == 1);
  CHECK(shards[0].metadata == R"({"version":1})");
  CHECK(checkpoint.pieces("weights", "window", 39, 41).size() == 2);
}

TEST_CASE("elements and arrays that a parameter does not have are out of range") {
  auto disk = disk_with(1);
  auto const checkpoint = Checkpoint::open(disk, "disk", 1).value();
  auto const refused = [&](char const* parameter, char const* array, std::uint64_t begin, std::uint64_t end,
                           std::size_t bytes) {
    std::vector<std::byte> into(bytes);
    auto const status = checkpoint.read(parameter, array, begin, end, into);
    return status.has_error() && status.error().code == CheckpointErrc::out_of_range;
  };
  CHECK_FALSE(refused("weights", "values", 3, 5, 8));
  CHECK(refused("weights", "values", 3, 5, 9));
  CHECK(refused("weights", "values", 119, 121, 8));
  CHECK(refused("weights", "values", 120, 121, 4));
  CHECK(refused("weights", "variance", 0, 1, 4));
  CHECK(refused("other", "values", 0, 1, 4));
  CHECK(refused("weights", "row_steps", 3, 5, 8));
  CHECK(refused("weights", "window", 0, 120, 8));
  auto piece = checkpoint.pieces("weights", "window", 0, 1).at(0);
  piece.end = 7;
  CHECK(checkpoint.read_piece(piece).error().code == CheckpointErrc::out_of_range);
}

TEST_CASE("every flipped byte of every file is found, and an older checkpoint is taken") {
  auto disk = disk_with(2);
  for (auto const& path : disk.paths()) {
    if (path.starts_with(first_directory)) continue;
    for (std::size_t at = 0; at < disk.bytes(path).size(); ++at) {
      disk.bytes(path)[at] ^= std::byte{0x10};
      auto const newest = open_newest(disk, "disk").value();
      REQUIRE(newest.checkpoint.manifest().number == 1);
      REQUIRE(newest.refused.size() == 1);
      auto const file = path.substr(path.rfind('/') + 1);
      REQUIRE(newest.refused[0].detail.find(file) != std::string::npos);
      disk.bytes(path)[at] ^= std::byte{0x10};
    }
  }
  CHECK(open_newest(disk, "disk")->checkpoint.manifest().number == 2);
}

TEST_CASE("every truncated file is found, at whatever byte it ends") {
  auto disk = disk_with(2);
  for (auto const& path : disk.paths()) {
    if (path.starts_with(first_directory)) continue;
    auto const whole = disk.bytes(path);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      disk.bytes(path).resize(size);
      REQUIRE(open_newest(disk, "disk")->checkpoint.manifest().number == 1);
      disk.bytes(path) = whole;
    }
  }
}

TEST_CASE("a missing file is named; without any good checkpoint the error has all reasons") {
  auto disk = disk_with(1);
  REQUIRE(disk.remove(std::string(first_directory) + "worker-1.safetensors").has_value());
  auto const newest = open_newest(disk, "disk");
  REQUIRE(newest.has_error());
  CHECK(newest.error().code == CheckpointErrc::not_found);
  CHECK(newest.error().detail.find("worker-1.safetensors is missing") != std::string::npos);
  CHECK(open_newest(disk, "elsewhere").error().code == CheckpointErrc::not_found);
}

TEST_CASE("files without a manifest are no checkpoint") {
  auto disk = disk_with(1);
  auto const record = Content(2).write_shard(disk, "disk", 2, 0, 1).value();
  CHECK(open_newest(disk, "disk")->checkpoint.manifest().number == 1);
  CHECK(open_newest(disk, "disk")->refused.empty());
  CHECK(next_number(disk, "disk").value() == 3);
  REQUIRE(commit(disk, "disk", Content(2).manifest(2, {record})).has_value());
  CHECK(open_newest(disk, "disk")->checkpoint.manifest().number == 2);
}

TEST_CASE("a checkpoint is committed once, and only with the files that it names") {
  auto disk = disk_with(1);
  CHECK(Content(5).write(disk, "disk", 1, 2).error().code == CheckpointErrc::exists);
  CHECK(numbers_in(disk) == std::vector<std::uint64_t>{1});
  auto record = Content(2).write_shard(disk, "disk", 2, 0, 1).value();
  record.bytes += 1;
  CHECK(commit(disk, "disk", Content(2).manifest(2, {record})).error().code == CheckpointErrc::damaged);
  record.bytes -= 1;
  record.name = "other.safetensors";
  CHECK(commit(disk, "disk", Content(2).manifest(2, {record})).has_error());
  CHECK(commit(disk, "disk", Content(2).manifest(2, {})).error().code == CheckpointErrc::bad_manifest);
}

TEST_CASE("a shard that contradicts itself is not written") {
  SimulatedDisk disk;
  std::vector<std::byte> const bytes(16);
  auto const refused = [&](ShardContent const& shard) {
    auto const record = write_file(disk, "disk", 1, "a", std::span(&shard, 1));
    return record.has_error() && record.error().code == CheckpointErrc::bad_content;
  };
  CHECK_FALSE(refused({"w", 0, 4, {{"values", Dtype::f32, 1, bytes}}, "{}", {}}));
  CHECK(refused({"w", 0, 5, {{"values", Dtype::f32, 1, bytes}}, "{}", {}}));
  CHECK(refused({"w", 4, 0, {{"values", Dtype::f32, 1, bytes}}, "{}", {}}));
  CHECK(refused({"w", 0, 4, {{"values", Dtype::f32, 1, bytes}}, "{}", {3, 2}}));
  CHECK(refused({"w", 1, 5, {{"row_steps", Dtype::u32, 2, std::span(bytes).first(8)}}, "{}", {}}));
  CHECK(refused({"w", 0, 1, {{"window", Dtype::f64, 0, std::span(bytes).first(9)}}, "{}", {}}));
  CHECK(write_file(disk, "disk", 1, "../a", {}).error().code == CheckpointErrc::bad_content);
}

TEST_CASE("directories that another writer's clean-up has removed as empty are made again") {
  SweptDisk disk;
  for (int const times : {0, 1, 2}) {
    disk.sweeps = times;
    auto const number = static_cast<std::uint64_t>(times) + 1;
    CHECK(Content(number).write_shard(disk, "disk/c", number, 0, 1).has_value());
  }
  disk.sweeps = 3;
  CHECK(Content(4).write_shard(disk, "disk/c", 4, 0, 1).error().code == std::errc::no_such_file_or_directory);
}

TEST_CASE("the newest checkpoints are kept, and older ones that were never committed are removed") {
  auto disk = disk_with(5);
  REQUIRE(Content(6).write_shard(disk, "disk", 6, 0, 2).has_value());
  REQUIRE(disk.remove("disk/checkpoint-000000000003/manifest.json").has_value());
  REQUIRE(remove_old(disk, "disk", 2).has_value());
  CHECK(numbers_in(disk) == std::vector<std::uint64_t>{4, 5});
  CHECK(disk.paths().back() == "disk/checkpoint-000000000006/worker-0.safetensors");  // it is being written
  REQUIRE(remove_old(disk, "disk", 0).has_value());
  CHECK(numbers_in(disk) == std::vector<std::uint64_t>{5});
}

TEST_CASE("ten thousand parameters are written, opened and read, each once") {
  SimulatedDisk disk;
  constexpr std::uint64_t parameters = 10000;
  std::vector<std::uint64_t> const values{1, 2};
  Manifest manifest;
  manifest.number = 1;
  std::vector<ShardContent> halves[2];
  for (std::uint64_t i = 0; i < parameters; ++i) {
    auto const name = "layer/" + std::to_string(i);
    manifest.parameters.push_back({name, "u64", {2}, "{}"});
    for (std::uint64_t half : {0, 1})
      halves[half].push_back({name,
                              half,
                              half + 1,
                              {{"values", Dtype::u64, 1, std::as_bytes(std::span(values).subspan(half, 1))}},
                              "{}",
                              {}});
  }
  for (auto const* name : {"a", "b"})
    manifest.files.push_back(write_file(disk, "disk", 1, name, halves[*name - 'a']).value());
  REQUIRE(commit(disk, "disk", manifest).has_value());
  auto const checkpoint = Checkpoint::open(disk, "disk", 1).value();
  for (std::uint64_t i = 0; i < parameters; ++i) {
    std::vector<std::uint64_t> found(2);
    auto const name = "layer/" + std::to_string(i);
    REQUIRE(checkpoint.read(name, "values", 0, 2, std::as_writable_bytes(std::span(found))).has_value());
    REQUIRE(found == values);
    REQUIRE(checkpoint.shards(name, 0, 2).size() == 2);
  }
}

TEST_CASE("a reader in Python that knows only the formats reads every tensor") {
  TemporaryDirectory const directory;
  auto const files = posix_files();
  REQUIRE(Content(4).write(*files, directory.path(), 12, 2).has_value());
  chorus::testing::Process python(
      {"/usr/bin/env", "python3",
       std::string(CHORUS_SOURCE_DIR) + "/worker/parameters/checkpoints/testing/read_checkpoint.py",
       directory.path() + "/checkpoint-000000000012"});
  auto const printed = python.read_all();
  REQUIRE(python.wait() == 0);
  auto const expected = [&](std::string const& tensor, std::string const& array, std::uint64_t at,
                            std::uint64_t count) {
    auto const bytes = checkpoints::testing::bytes_of(array, 4, at, count);
    return tensor + " " + sha256_of({reinterpret_cast<char const*>(bytes.data()), bytes.size()}) + "\n";
  };
  CHECK(std::count(printed.begin(), printed.end(), '\n') == 9);
  for (auto const& line : {expected("worker-0.safetensors weights F32 12,5", "values", 0, 240),
                           expected("worker-0.safetensors weights@momentum F32 60", "momentum", 0, 240),
                           expected("worker-0.safetensors bias F16 7", "bias", 0, 14),
                           expected("worker-1.safetensors weights F32 12,5", "values", 240, 240),
                           expected("worker-1.safetensors weights@row_steps U64 12", "row_steps", 96, 96)}) {
    INFO(line);
    CHECK(printed.find(line) != std::string::npos);
  }
}

TEST_CASE("write_file() and commit() give the example of docs/reference/checkpoints.md") {
  TemporaryDirectory const directory;
  auto const files = posix_files();
  REQUIRE(write_example(*files, directory.path()).has_value());
  auto const read = [&](char const* name) {
    std::ostringstream stream;
    stream << std::ifstream(directory.path() + "/checkpoint-000000000001/" + name).rdbuf();
    return stream.str();
  };
  auto const text = page("checkpoints.md");
  CHECK(text.find(read("manifest.json")) != std::string::npos);
  auto const file = read("worker-a.safetensors");
  CHECK(text.find("\n" + file.substr(8, file.find("}}") - 6) + "\n") != std::string::npos);
  std::string hex;
  for (auto const c : file.substr(file.size() - 32)) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (hex.size() % 9 == 8) hex += ' ';
    hex += digits[static_cast<unsigned char>(c) >> 4];
    hex += digits[static_cast<unsigned char>(c) & 15];
  }
  CHECK(text.find("\n" + hex + "\n") != std::string::npos);
}
