// Moves rows from one journal file to another. The test e2e_journal_command moves rows to a real etcd.
#include "server/coordinator/stores/moved_rows.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/journal_state.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using namespace chorus::testing;

namespace {

StoreOptions journal_at(std::string path) {
  StoreOptions options;
  options.journal = std::move(path);
  return options;
}

std::vector<Row> rows_of_epochs() {
  JournalEpoch epoch;
  epoch.last = 7;
  return {row_of("g", epoch), row_of(Counter::run, 12), row_of_parameter("p", epoch)};
}

// Makes a journal that holds the rows.
void make_journal(std::string const& path, std::vector<Row> const& rows) {
  auto const file = JournalFile::open(path).value();
  REQUIRE(file->write(rows).has_value());
}

}  // namespace

TEST_CASE("rows of a journal are moved to a new journal") {
  ScratchDirectory const here;
  make_journal(here / "old", rows_of_epochs());
  auto const taken = take_rows(journal_at(here / "old"));
  REQUIRE(taken.has_value());
  CHECK(taken->rows == rows_of_epochs());
  CHECK(taken->cluster.empty());
  REQUIRE(put_rows(*taken, journal_at(here / "new"), 1).has_value());
  CHECK(take_rows(journal_at(here / "new"))->rows == rows_of_epochs());
}

TEST_CASE("the export of a missing journal fails and creates no file") {
  ScratchDirectory const here;
  auto const taken = take_rows(journal_at(here / "none"));
  REQUIRE(taken.has_error());
  CHECK(taken.error().detail == "there is no journal " + (here / "none"));
  CHECK_FALSE(std::filesystem::exists(here / "none"));
}

TEST_CASE("a journal that is open is neither exported nor imported into") {
  ScratchDirectory const here;
  auto const open = JournalFile::open(here / "journal").value();
  auto const taken = take_rows(journal_at(here / "journal"));
  REQUIRE(taken.has_error());
  CHECK(mentions(taken.error().detail, "another coordinator has it open"));
  ExportedRows exported;
  exported.rows = rows_of_epochs();
  auto const put = put_rows(exported, journal_at(here / "journal"), 1);
  REQUIRE(put.has_error());
  CHECK(mentions(put.error().detail, "another coordinator has it open"));
}

TEST_CASE("a journal with rows is not imported into") {
  ScratchDirectory const here;
  JournalEpoch other;
  make_journal(here / "journal", {row_of("h", other)});
  ExportedRows exported;
  exported.rows = rows_of_epochs();
  auto const put = put_rows(exported, journal_at(here / "journal"), 1);
  REQUIRE(put.has_error());
  CHECK(put.error().detail ==
        "the journal " + (here / "journal") + " is not empty: rows are imported into an empty one only");
  CHECK(take_rows(journal_at(here / "journal"))->rows == std::vector<Row>{row_of("h", other)});
}

TEST_CASE("rows that no coordinator can start with are not imported, and no journal is created") {
  ScratchDirectory const here;
  ExportedRows exported;
  exported.rows = {{Table::groups, "g", R"({"unknown":1})"}};
  auto const put = put_rows(exported, journal_at(here / "journal"), 1);
  REQUIRE(put.has_error());
  CHECK(mentions(put.error().detail, "row 'g' of table groups is not what this release writes"));
  CHECK_FALSE(std::filesystem::exists(here / "journal"));
}
