#include "worker/parameters/log/push_log.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "worker/parameters/checkpoints/testing/simulated_disk.hpp"
#include "worker/parameters/checkpoints/testing/temporary_directory.hpp"
#include "worker/parameters/log/recovery.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace fs = std::filesystem;

class World {
 public:
  World() : path(directory_.path() + "/w@0"), files_(posix_.get()) {
    assignment_.parameter.durability = "log";
    shard_ = Shard::make(ShardSpec::from(assignment_).value(), pool_).value();
  }

  // The log is on this disk from now on.
  void use(checkpoints::Files& files, std::string directory) {
    files_ = &files;
    path = std::move(directory);
  }
  // Begins a log in this epoch.
  void own(std::uint32_t epoch) {
    log_ = std::make_unique<PushLog>(*files_, path, epoch);
    REQUIRE(log_->open().has_value());
    rotate();
  }
  void rotate() {
    auto const generation = log_->begin();
    REQUIRE(generation.has_value());
    auto const image = shard_->image();
    REQUIRE(log_->write_base(*generation, shard_->spec(), *image).has_value());
  }
  std::uint64_t begin() { return log_->begin().value(); }
  void write_base(std::uint64_t generation, ShardImage const& image) {
    REQUIRE(log_->write_base(generation, shard_->spec(), image).has_value());
  }
  Status try_base(std::uint64_t generation, ShardImage const& image) {
    return log_->write_base(generation, shard_->spec(), image);
  }
  void withdraw() { log_->withdraw(); }
  ShardImage image() { return shard_->image().value(); }

  // Applies pushes of ones and writes them with one sync.
  void push(int count = 1) {
    std::vector<LogEntry> entries;
    for (int i = 0; i < count; ++i) {
      Push push;
      push.client = {"a", 9};
      push.sequence = shard_->window().next_sequence(push.client);
      auto const block = pool_.acquire(8).value();
      float const ones[2]{1, 1};
      std::memcpy(block->data(), ones, sizeof ones);
      push.data = block;
      entries.push_back({shard_->position(), push});
      auto change = shard_->prepare(std::move(push));
      REQUIRE(change->compute_all().has_value());
      shard_->finish(std::move(*change));
    }
    REQUIRE(log_->append(entries).has_value());
  }

  Result<std::unique_ptr<Shard>> recover() {
    return parameters::recover(*files_, path, ShardSpec::from(assignment_).value(), pool_);
  }
  // Returns the number of recovered pushes; -1 if the log is damaged.
  int recovered() {
    auto const shard = recover();
    if (shard.has_error()) {
      CHECK_MESSAGE(shard.error().code == LogErrc::damaged, shard.error().detail);
      return -1;
    }
    auto const pushes = static_cast<int>((*shard)->position());
    float values[2];
    std::memcpy(values, (*shard)->values()->data(), sizeof values);
    CHECK(values[0] == static_cast<float>(pushes));
    CHECK((*shard)->window().next_sequence({"a", 9}) == static_cast<std::uint64_t>(pushes));
    CHECK((*shard)->version() == static_cast<std::uint64_t>(pushes));
    return pushes;
  }

  std::string const& file(std::string const& name) { return last_ = path + "/epoch-1/" + name; }
  static std::string content(std::string const& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(std::string const& file, std::string const& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }

  checkpoints::testing::TemporaryDirectory directory_;
  std::string path;

 private:
  std::string last_;
  tensors::Pool pool_{1 << 20, 64 << 20};
  std::unique_ptr<checkpoints::Files> const posix_ = checkpoints::posix_files();
  checkpoints::Files* files_;
  api::ShardAssignment assignment_ = testing::plain({2});
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<PushLog> log_;
};

}  // namespace

TEST_CASE("a shard is recovered with every push and with the next sequence numbers") {
  World world;
  world.own(1);
  CHECK(world.recovered() == 0);
  world.push();
  world.push(5);
  CHECK(world.recovered() == 6);
}

TEST_CASE("a base replaces all files before it") {
  World world;
  world.own(1);
  world.push(3);
  world.rotate();
  world.push(2);
  CHECK(world.recovered() == 5);
  CHECK(fs::exists(world.file("base-2")));
  CHECK_FALSE(fs::exists(world.file("base-1")));
  CHECK_FALSE(fs::exists(world.file("log-1")));
}

TEST_CASE("until the next base is complete, the base before it counts, with both log files") {
  World world;
  world.own(1);
  world.push(3);
  auto const image = world.image();
  auto const generation = world.begin();
  world.push(2);
  CHECK(world.recovered() == 5);
  World::write(world.file("base-2.partial"), "half of it");
  CHECK(world.recovered() == 5);
  world.write_base(generation, image);
  world.push();
  CHECK(world.recovered() == 6);
}

TEST_CASE("a log that is cut off anywhere still has everything that was committed before the cut") {
  World world;
  world.own(1);
  auto const file = world.file("log-1");
  std::vector<std::uint64_t> ends{0};
  for (int i = 0; i < 3; ++i) {
    world.push();
    ends.push_back(fs::file_size(file));
  }
  auto const whole = World::content(file);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    World::write(file, whole.substr(0, length));
    auto const pushes = world.recovered();
    auto const committed = std::ranges::count_if(ends, [&](auto end) { return end != 0 && end <= length; });
    INFO("cut at " << length);
    CHECK((pushes == committed || pushes == committed + 1));
  }
}

TEST_CASE("a byte that was flipped is found, wherever it is, and the file is named") {
  World world;
  world.own(1);
  world.push(2);
  world.push();
  for (auto const* const name : {"log-1", "base-1"}) {
    auto const file = world.file(name);
    auto const whole = World::content(file);
    // Damage of the last commit is not detected: without it the pushes that it covers count as not synced.
    auto const end = whole.size() - (std::string_view(name) == "log-1" ? 40 : 0);
    for (std::size_t i = 0; i < end; ++i) {
      auto bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ 4);
      World::write(file, bytes);
      INFO(name << " byte " << i);
      CHECK(world.recovered() == -1);
    }
    World::write(file, whole);
  }
  CHECK(world.recovered() == 3);
}

TEST_CASE("a worker that owns the shard again begins a new log, and the last epoch with a base counts") {
  World world;
  world.own(1);
  world.push(2);
  fs::create_directory(world.path + "/epoch-9");
  World::write(world.path + "/epoch-9/log-1", "");
  CHECK(world.recovered() == 2);
  world.own(10);
  world.push();
  CHECK(world.recovered() == 3);
  CHECK_FALSE(fs::exists(world.path + "/epoch-1"));
  CHECK_FALSE(fs::exists(world.path + "/epoch-9"));
}

TEST_CASE("a base that cannot be written leaves no file, and incomplete files of an earlier process are removed") {
  World world;
  world.own(1);
  world.push(2);
  auto const generation = world.begin();
  auto const image = world.image();
  World::write(world.file("base-2.partial"), "half of it");
  fs::create_directory(world.file("base-2"));  // so the base cannot get its name
  fs::create_directory(world.file("base-2") + "/x");
  CHECK(world.try_base(generation, image).has_error());
  CHECK_FALSE(fs::exists(world.file("base-2.partial")));
  fs::remove_all(world.file("base-2"));
  CHECK(world.recovered() == 2);
  World::write(world.file("base-3.partial"), "half of it");
  auto const left = world.path + "/epoch-1/base-3.partial";
  world.own(4);
  CHECK_FALSE(fs::exists(left));
  CHECK(world.recovered() == 2);
}

TEST_CASE("a generation that gets no base is withdrawn with its file") {
  World world;
  world.own(1);
  world.push(2);
  world.begin();
  CHECK(fs::exists(world.file("log-2")));
  world.withdraw();
  CHECK_FALSE(fs::exists(world.file("log-2")));
  CHECK(world.recovered() == 2);
}

TEST_CASE("a missing log is not found") {
  World world;
  CHECK(world.recover().error().code == LogErrc::not_found);
}

TEST_CASE("pushes of a new log survive a crash of the machine, also the directories that were made for it") {
  checkpoints::testing::SimulatedDisk disk;
  World world;
  world.use(disk, "disk/w@0");
  world.own(1);
  world.push(3);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto found = disk.after_crash(seed);
    world.use(found, "disk/w@0");
    CHECK(world.recovered() == 3);
  }
}

}  // namespace chorus::parameters
