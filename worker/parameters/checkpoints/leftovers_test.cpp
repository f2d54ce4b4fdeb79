// Checkpoints that are not committed leave nothing on the disk, at once or from the next checkpoint on.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "worker/parameters/checkpoints/layout.hpp"
#include "worker/parameters/checkpoints/leftovers.hpp"
#include "worker/parameters/checkpoints/testing/content.hpp"
#include "worker/parameters/checkpoints/testing/simulated_disk.hpp"
#include "worker/parameters/checkpoints/testing/temporary_directory.hpp"

using namespace chorus;
using namespace chorus::checkpoints;
using chorus::checkpoints::testing::Content;
using chorus::checkpoints::testing::SimulatedDisk;
using chorus::checkpoints::testing::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

void put(std::string const& path) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "half of it";
}

}  // namespace

TEST_CASE("a file that cannot be written leaves neither itself nor its directory, at whichever operation") {
  int failures = 0;
  for (bool ended = false; !ended; ++failures) {
    SimulatedDisk disk;
    disk.fail_at(static_cast<std::uint64_t>(failures), std::errc::no_space_on_device);
    auto const written = Content(1).write_shard(disk, "disk", 1, 0, 2);
    ended = !disk.has_happened();
    CHECK(written.has_value() == ended);
    CAPTURE(failures);
    CHECK(disk.paths().empty() != ended);
    CHECK(disk.list("disk")->empty() != ended);
  }
  CHECK(failures > 6);
}

TEST_CASE("a checkpoint that is given up is removed file by file, and a committed one is not") {
  SimulatedDisk disk;
  REQUIRE(disk.make_directory("disk/c").has_value());
  REQUIRE(Content(1).write(disk, "disk/c", 1, 2).has_value());
  auto const committed = disk.paths();
  for (std::uint64_t shard = 0; shard < 2; ++shard)
    REQUIRE(Content(2).write_shard(disk, "disk/c", 2, shard, 2).has_value());
  for (auto const& path : disk.paths()) {
    auto const file = fs::path(path);
    if (file.extension() != ".safetensors") continue;
    CHECK(discard_file(disk, "disk/c", 2, file.stem()).has_value());
    CHECK(discard_file(disk, "disk/c", 1, file.stem()).has_value());
  }
  CHECK(disk.paths() == committed);
  CHECK(next_number(disk, "disk/c").value() == 2);
}

TEST_CASE("leftovers of earlier processes are removed before the next checkpoint, except files being written") {
  TemporaryDirectory const root;
  auto const files = posix_files();
  auto const directory = root.path() + "/c";
  fs::create_directory(directory);
  REQUIRE(Content(1).write(*files, directory, 1, 2).has_value());
  put(directory + "/checkpoint-000000000002/a.safetensors");
  put(directory + "/checkpoint-000000000002/b.safetensors.partial");
  put(directory + "/checkpoint-000000000003/a.safetensors");
  auto const writing = files->create(directory + "/checkpoint-000000000003/b.safetensors.partial");
  REQUIRE(writing.has_value());
  CHECK(remove_leftovers(*files, directory).has_value());
  CHECK(fs::exists(directory + "/checkpoint-000000000001/manifest.json"));
  CHECK_FALSE(fs::exists(directory + "/checkpoint-000000000002"));
  CHECK(fs::exists(directory + "/checkpoint-000000000003/a.safetensors"));
  CHECK(fs::exists(directory + "/checkpoint-000000000003/b.safetensors.partial"));
}

TEST_CASE("a sweep removes abandoned files from every checkpoint, and leaves complete ones") {
  TemporaryDirectory const root;
  auto const files = posix_files();
  put(root.path() + "/dead/checkpoint-000000000001/a.safetensors.partial");
  put(root.path() + "/half/checkpoint-000000000001/a.safetensors.partial");
  put(root.path() + "/half/checkpoint-000000000001/b.safetensors");
  put(root.path() + "/no checkpoint/a.partial");
  auto const writing = root.path() + "/alive/checkpoint-000000000001/a.safetensors.partial";
  fs::create_directories(fs::path(writing).parent_path());
  auto const file = files->create(writing);
  REQUIRE(file.has_value());
  sweep(*files, root.path());
  CHECK_FALSE(fs::exists(root.path() + "/dead"));
  CHECK_FALSE(fs::exists(root.path() + "/half/checkpoint-000000000001/a.safetensors.partial"));
  CHECK(fs::exists(root.path() + "/half/checkpoint-000000000001/b.safetensors"));
  CHECK(fs::exists(root.path() + "/no checkpoint/a.partial"));
  CHECK(fs::exists(writing));
}

TEST_CASE("two processes do not write one file: the second gets an error") {
  TemporaryDirectory const root;
  auto const path = root.path() + "/a.partial";
  put(path);
  auto const other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  auto const refused = posix_files()->create(path);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == std::errc::device_or_resource_busy);
  CHECK(fs::file_size(path) != 0);
  CHECK_FALSE(posix_files()->remove_abandoned(path).value());
  ::close(other);
  CHECK(posix_files()->create(path).has_value());
  CHECK(posix_files()->remove_abandoned(path).value());
}
