#include "worker/parameters/log/directory_lock.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "worker/parameters/checkpoints/testing/temporary_directory.hpp"

using chorus::parameters::DirectoryLock;

TEST_CASE("one worker at a time has its logs in a directory") {
  chorus::checkpoints::testing::TemporaryDirectory const directory;
  std::optional<DirectoryLock> first(std::in_place, directory.path());
  CHECK_THROWS_WITH_AS(DirectoryLock(directory.path()),
                       doctest::Contains("is in use: another worker has its logs there"), std::runtime_error);
  first.reset();
  CHECK_NOTHROW(DirectoryLock(directory.path()));
}

TEST_CASE("where there is no directory, none is locked") {
  CHECK_NOTHROW(DirectoryLock(""));
  CHECK_NOTHROW(DirectoryLock("/nowhere/at/all"));
  CHECK_NOTHROW(DirectoryLock("/nowhere/at/all"));
}
