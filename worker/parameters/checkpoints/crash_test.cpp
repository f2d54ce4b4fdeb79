// Whatever happens while a checkpoint is written, the last good one is found and complete.
#include <doctest/doctest.h>

#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/testing/content.hpp"
#include "worker/parameters/checkpoints/testing/simulated_disk.hpp"

using namespace chorus;
using namespace chorus::checkpoints;
using chorus::checkpoints::testing::Content;
using chorus::checkpoints::testing::SimulatedDisk;

namespace {

constexpr std::uint64_t outcomes = 40;  // checked for each crash

// Checkpoint N has the content of version N.
Status write_and_tidy(SimulatedDisk& disk, std::uint64_t number, std::uint64_t shards) {
  if (auto const written = Content(number).write(disk, "disk", number, shards); written.has_error()) return written;
  return remove_old(disk, "disk", 1);
}

std::uint64_t newest_whole(SimulatedDisk& disk) {
  auto const newest = open_newest(disk, "disk", Verify::sha256);
  REQUIRE(newest.has_value());
  auto const number = newest->checkpoint.manifest().number;
  REQUIRE(Content(number).is_in(newest->checkpoint, 5));
  // No other checkpoint is there in part.
  for (std::uint64_t other = 1; other <= number; ++other) {
    auto const opened = Checkpoint::open(disk, "disk", other);
    REQUIRE((opened.has_value() || opened.error().code == CheckpointErrc::not_found));
  }
  return number;
}

SimulatedDisk disk_with_checkpoint_1() {
  SimulatedDisk disk;
  REQUIRE(write_and_tidy(disk, 1, 3).has_value());
  return disk;
}

// Checks that leftovers do not prevent the next checkpoint.
void check_next_one(SimulatedDisk& disk) {
  auto const next = next_number(disk, "disk").value();
  REQUIRE(write_and_tidy(disk, next, 2).has_value());
  REQUIRE(newest_whole(disk) == next);
  for (auto const& path : disk.paths())
    REQUIRE(path.starts_with("disk/checkpoint-" + std::string(11, '0') + std::to_string(next)));
}

}  // namespace

TEST_CASE("a crash at any operation leaves the old checkpoint or the new one, and a committed one is never lost") {
  std::uint64_t crashes = 0;
  for (bool ended = false; !ended; ++crashes) {
    auto disk = disk_with_checkpoint_1();
    disk.crash_at(crashes);
    bool const committed = Content(2).write(disk, "disk", 2, 2).has_value();
    if (committed) ended = remove_old(disk, "disk", 1).has_value() && !disk.has_happened();
    for (std::uint64_t seed = 0; seed < outcomes; ++seed) {
      CAPTURE(crashes);
      CAPTURE(seed);
      auto found = disk.after_crash(seed);
      auto const number = newest_whole(found);
      REQUIRE((number == 2 || (number == 1 && !committed)));
      check_next_one(found);
    }
  }
  CHECK(crashes > 20);  // the least number of operations
}

TEST_CASE("a disk that is full or broken at any operation keeps the old checkpoint, and the next attempt succeeds") {
  for (auto const code : {std::errc::no_space_on_device, std::errc::io_error})
    for (std::uint64_t times : {std::uint64_t{1}, std::uint64_t{1000}}) {
      std::uint64_t failures = 0;
      for (bool ended = false; !ended; ++failures) {
        auto disk = disk_with_checkpoint_1();
        disk.fail_at(failures, code, times);
        auto const written = Content(2).write(disk, "disk", 2, 2);
        CHECK((written.has_value() || written.error().code == std::make_error_code(code)));
        auto const number = newest_whole(disk);
        REQUIRE((number == 2 || (number == 1 && written.has_error())));
        ended = !disk.has_happened();
        // The files of a failed attempt are not needed, and a crash now loses nothing more.
        auto found = disk.after_crash(failures);
        REQUIRE(newest_whole(found) >= (written.has_value() ? 2u : 1u));
        disk.fail_at(0, code, 0);
        check_next_one(disk);
      }
      CHECK(failures > 15);
    }
}

TEST_CASE("the first checkpoint of a name survives a crash, also the directory that was made for it") {
  SimulatedDisk disk;
  REQUIRE(disk.make_directory("disk/nightly").has_value());
  REQUIRE(Content(1).write(disk, "disk/nightly", 1, 2).has_value());
  for (std::uint64_t seed = 0; seed < outcomes; ++seed) {
    auto found = disk.after_crash(seed);
    REQUIRE(open_newest(found, "disk/nightly").has_value());
  }
}

TEST_CASE("the first checkpoint exists or does not exist, never in part") {
  std::uint64_t crashes = 0;
  for (bool committed = false; !committed; ++crashes) {
    SimulatedDisk disk;
    disk.crash_at(crashes);
    committed = Content(1).write(disk, "disk", 1, 2).has_value();
    for (std::uint64_t seed = 0; seed < outcomes; ++seed) {
      auto found = disk.after_crash(seed);
      auto const newest = open_newest(found, "disk");
      if (newest.has_value())
        REQUIRE(Content(1).is_in(newest->checkpoint, 1));
      else
        REQUIRE((!committed && newest.error().code == CheckpointErrc::not_found));
    }
  }
  CHECK(crashes > 10);
}
