// A journal on a volume without permission, without room, without the file, or with another file in its place.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/testing/journal_rows.hpp"
#include "tests/support/faults/full_disk.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using namespace chorus::coordinator::testing;
using namespace chorus::testing;

namespace {

// Runs as another user than root, for whom permissions have no meaning.
class SomebodyElse {
 public:
  SomebodyElse() {
    if (is_root_) REQUIRE(::seteuid(65532) == 0);
  }
  ~SomebodyElse() {
    if (is_root_) CHECK(::seteuid(0) == 0);
  }
  SomebodyElse(SomebodyElse const&) = delete;
  SomebodyElse& operator=(SomebodyElse const&) = delete;

 private:
  bool const is_root_ = ::geteuid() == 0;
};

Error refusal_to_somebody_else(std::string const& path) {
  SomebodyElse const other;
  return refusal_of(path);
}

}  // namespace

TEST_CASE("a read-only journal is refused at the start, and the message names the user") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  opened(path).reset();
  ::chmod(path.c_str(), 0444);
  ::chmod((here / "").c_str(), 0755);
  auto const error = refusal_to_somebody_else(path);
  CHECK(error.code == JournalErrc::cannot_write);
  CHECK(says(error, "cannot be written: Permission denied; user "));
  CHECK(says(error, " has to be allowed to read and write it"));
}

TEST_CASE("a directory without permission is refused for its permissions, not as missing") {
  ScratchDirectory const here;
  ::chmod((here / "").c_str(), 0555);
  auto const error = refusal_to_somebody_else(here / "journal");
  ::chmod((here / "").c_str(), 0755);
  CHECK(error.code == JournalErrc::cannot_write);
  CHECK(says(error, "Permission denied"));
  CHECK(
      says(error, " has to be allowed to write to " + std::filesystem::path(here / "journal").parent_path().string()));
  CHECK_FALSE(says(error, "has to exist"));
}

TEST_CASE("a journal that is removed under the coordinator is written anew, with all its rows") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  SUBCASE("the file and its log") {
    auto const file = opened(path);
    REQUIRE(file->write(Rows{row(1)}).has_value());
    REQUIRE(::unlink(path.c_str()) == 0);
    REQUIRE(::unlink((path + "-wal").c_str()) == 0);
    REQUIRE(file->write(Rows{row(2)}).has_value());
  }
  SUBCASE("the log alone") {
    auto const file = opened(path);
    REQUIRE(file->write(Rows{row(1)}).has_value());
    REQUIRE(::unlink((path + "-wal").c_str()) == 0);
    REQUIRE(file->write(Rows{row(2)}).has_value());
  }
  SUBCASE("the file alone, noticed by a write without rows") {
    auto const file = opened(path);
    REQUIRE(file->write(Rows{row(1), row(2)}).has_value());
    REQUIRE(::unlink(path.c_str()) == 0);
    REQUIRE(file->write(Rows{}).has_value());
  }
  CHECK(rows_of(path) == Rows{row(1), row(2)});
}

TEST_CASE("a journal whose directory was removed is written again when the directory exists") {
  ScratchDirectory const here;
  auto const directory = here / "volume";
  auto const path = directory + "/journal";
  REQUIRE(::mkdir(directory.c_str(), 0755) == 0);
  auto const file = opened(path);
  REQUIRE(file->write(Rows{row(1)}).has_value());
  REQUIRE(::rename(directory.c_str(), (here / "away").c_str()) == 0);
  auto const written = file->write(Rows{row(2)});
  REQUIRE(written.has_error());
  CHECK(says(written.error(), path));
  REQUIRE(::mkdir(directory.c_str(), 0755) == 0);
  REQUIRE(file->write(Rows{row(2)}).has_value());
  CHECK(rows_of(here / "away/journal") == Rows{row(1)});
}

TEST_CASE("a journal that is replaced under the coordinator is left alone, until it is moved away") {
  ScratchDirectory const here;
  auto const path = here / "journal", other = here / "other";
  REQUIRE(opened(other)->write(Rows{row(7)}).has_value());
  auto const file = opened(path);
  REQUIRE(file->write(Rows{row(1)}).has_value());
  REQUIRE(::rename(other.c_str(), path.c_str()) == 0);
  auto const written = file->write(Rows{row(2)});
  REQUIRE(written.has_error());
  CHECK(written.error().code == JournalErrc::cannot_write);
  CHECK(says(written.error(), "replaced by another file"));
  REQUIRE(::rename(path.c_str(), other.c_str()) == 0);
  REQUIRE(file->write(Rows{row(2)}).has_value());
  CHECK(rows_of(other) == Rows{row(7)});
}

TEST_CASE("on a full disk a write fails as a whole, and succeeds when there is room again") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  auto const file = opened(path);
  REQUIRE(file->write(Rows{row(1)}).has_value());
  Rows many;
  for (int number = 2; number < 40; ++number) many.push_back(row(number, 3000));
  {
    FullDisk const full(64 << 10);
    auto const written = file->write(many);
    REQUIRE(written.has_error());
    CHECK(written.error().code == JournalErrc::cannot_write);
    CHECK(file->read().value() == Rows{row(1)});
  }
  REQUIRE(file->write(many).has_value());
  CHECK(file->read().value().size() == 39);
}

TEST_CASE("a journal that cannot be created is refused with its directory and how to mend it") {
  ScratchDirectory const here;
  auto const nowhere = JournalFile::open(here / "volume/journal");
  REQUIRE(nowhere.has_error());
  CHECK(nowhere.error().detail.find("the directory " + (here / "volume") +
                                    " has to exist: make it, or mount a volume there") != std::string::npos);
  auto const unwritable = JournalFile::open("/proc/journal");
  REQUIRE(unwritable.has_error());
  CHECK(unwritable.error().detail.find("/proc") != std::string::npos);
}
