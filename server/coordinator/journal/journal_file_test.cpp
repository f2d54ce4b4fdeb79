// The file of a journal: reading returns the rows that were written, or an error, and never a part of the rows.
#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>

#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/testing/journal_rows.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using namespace chorus::coordinator::testing;
using namespace chorus::testing;

namespace {

void execute(std::string const& path, char const* sql) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_close(database) == SQLITE_OK);
}

// Copies a journal to `image` as a crash would leave it, with all transactions in the log. Returns the rows before and
// after each transaction.
std::vector<Rows> write_and_crash(std::string const& path, std::string const& image, int transactions) {
  auto const file = opened(path);
  std::vector<Rows> states{file->read().value()};
  for (int number = 0; number < transactions; ++number) {
    Rows const batch{row(number), {Table::counters, "run", R"({"value":)" + std::to_string(number) + "}"}};
    REQUIRE(file->write(batch).has_value());
    states.push_back(file->read().value());
  }
  write_file(image, content_of(path));
  write_file(image + "-wal", content_of(path + "-wal"));
  return states;
}

bool is_one_of(Rows const& rows, std::vector<Rows> const& states) {
  return std::find(states.begin(), states.end(), rows) != states.end();
}

// Tests change every byte of the headers and a sample of the others: each change makes a file to open.
constexpr std::size_t stride = 197;
std::size_t next_byte(std::size_t byte) { return byte < 128 ? 1 : stride; }

}  // namespace

TEST_CASE("rows that were written, replaced or erased are read back so") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  {
    auto const file = opened(path);
    CHECK(file->read().value().empty());
    CHECK(file->write(Rows{row(1), row(2), {Table::workers, "w0", "{}"}}).has_value());
    CHECK(file->write(Rows{row(1, 5), {Table::collectives, row(2).key, std::nullopt}}).has_value());
  }
  CHECK(rows_of(path) == Rows{{Table::workers, "w0", "{}"}, row(1, 5)});
  struct stat found {};
  CHECK(::stat((path + ".new").c_str(), &found) != 0);
}

TEST_CASE("bodies may contain any JSON") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  Row const odd{Table::groups, "g", std::string("{\"a\":\"'; DROP TABLE groups; -- \xc3\xa9\\u0000\"}")};
  REQUIRE(opened(path)->write(Rows{odd}).has_value());
  CHECK(rows_of(path) == Rows{odd});
}

TEST_CASE("rows survive a crash right after their write") {
  ScratchDirectory const here;
  auto const states = write_and_crash(here / "journal", here / "image", 20);
  CHECK(rows_of(here / "image") == states.back());
}

TEST_CASE("a journal that is cut at any byte is refused") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  {
    auto const file = opened(path);
    for (int number = 0; number < 60; ++number) REQUIRE(file->write(Rows{row(number)}).has_value());
  }  // closed in good order: all rows are in the file, and there is no log
  auto const whole = content_of(path);
  auto const expected = rows_of(path);
  REQUIRE(whole.size() > 6 * 4096);
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 2048) {  // every page and the middle of it
    INFO("cut at " << bytes << " of " << whole.size());
    write_file(path, whole.substr(0, bytes));
    auto const rows = taken_up(path);
    CHECK(rows.has_error());
    if (rows.has_error()) CHECK(says(rows.error(), "move it"));
    std::remove((path + "-wal").c_str());
  }
}

TEST_CASE("a journal with a changed bit is refused, or its rows are unchanged") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  {
    auto const file = opened(path);
    for (int number = 0; number < 25; ++number) REQUIRE(file->write(Rows{row(number)}).has_value());
  }
  auto const whole = content_of(path);
  auto const expected = rows_of(path);
  std::size_t noticed = 0, bytes_of_rows = 0;
  for (auto const& one : expected) bytes_of_rows += one.key.size() + one.body->size();
  for (std::size_t byte = 0; byte < whole.size(); byte += next_byte(byte)) {
    auto flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << byte % 8));
    write_file(path, flipped);
    auto const rows = taken_up(path);
    INFO("byte " << byte);
    if (rows.has_error())
      ++noticed;
    else
      CHECK(*rows == expected);
    std::remove((path + "-wal").c_str());
  }
  CHECK(noticed > bytes_of_rows / stride);  // much of a new file is empty pages
}

TEST_CASE("a truncated log gives the transactions before the cut") {
  ScratchDirectory const here;
  auto const image = here / "image";
  auto const states = write_and_crash(here / "journal", image, 8);
  auto const file = content_of(image);
  auto const log = content_of(image + "-wal");
  for (std::size_t bytes = 0; bytes < log.size(); bytes += 1000) {
    INFO("cut at " << bytes << " of " << log.size());
    write_file(image, file);
    write_file(image + "-wal", log.substr(0, bytes));
    auto const rows = taken_up(image);
    REQUIRE(rows.has_value());
    CHECK(is_one_of(*rows, states));
  }
}

TEST_CASE("a log with a changed bit is refused, unless it loses only what a crash may lose") {
  ScratchDirectory const here;
  auto const image = here / "image";
  auto const states = write_and_crash(here / "journal", image, 8);
  std::vector<Rows> const last_two{states[states.size() - 2], states.back()};
  auto const file = content_of(image);
  auto const log = content_of(image + "-wal");
  std::size_t refused = 0;
  for (std::size_t byte = 0; byte < log.size(); byte += next_byte(byte)) {
    auto flipped = log;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << byte % 8));
    write_file(image, file);
    write_file(image + "-wal", flipped);
    auto const rows = taken_up(image);
    INFO("byte " << byte << " of " << log.size());
    if (rows.has_error())
      ++refused;
    else
      CHECK(is_one_of(*rows, last_two));
  }
  CHECK(refused > log.size() / stride / 2);
}

TEST_CASE("a log whose file is missing is refused and left unchanged, and goes on with its file") {
  ScratchDirectory const here;
  auto const image = here / "image";
  auto const states = write_and_crash(here / "journal", image, 3);
  auto const log = content_of(image + "-wal");
  std::filesystem::rename(image, here / "moved");
  CHECK(refusal_of(image).code == JournalErrc::damaged);
  CHECK(says(refusal_of(image), image + "-wal is there: bring the file back"));
  CHECK_FALSE(std::filesystem::exists(image));
  CHECK(content_of(image + "-wal") == log);
  std::filesystem::rename(here / "moved", image);
  CHECK(rows_of(image) == states.back());
  // A log without content is no reason.
  write_file(here / "other-wal", "");
  CHECK(rows_of(here / "other").empty());
}

TEST_CASE("a file that is no journal is refused with its kind and how to go on") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  write_file(path, "");
  CHECK(refusal_of(path).code == JournalErrc::damaged);
  CHECK(says(refusal_of(path), "is empty"));
  write_file(path, std::string(5000, 'x'));
  CHECK(refusal_of(path).code == JournalErrc::not_a_journal);
  CHECK(says(refusal_of(path), "move it"));
  CHECK(content_of(path) == std::string(5000, 'x'));
  std::remove(path.c_str());
  execute(path, "CREATE TABLE t(x)");
  CHECK(refusal_of(path).code == JournalErrc::not_a_journal);
  CHECK(says(refusal_of(path), "another program"));
  std::remove(path.c_str());
  ::mkdir(path.c_str(), 0755);
  CHECK(refusal_of(path).code == JournalErrc::not_a_journal);
  CHECK(says(refusal_of(path), "a directory"));
  CHECK(refusal_of(here / "no/such/journal").code == JournalErrc::cannot_write);
}

TEST_CASE("a journal of a newer release is refused and left unchanged") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  opened(path).reset();
  execute(path, "PRAGMA user_version=3");
  CHECK(refusal_of(path).code == JournalErrc::newer);
  CHECK(says(refusal_of(path), "schema is 3, this release knows 2"));
}

TEST_CASE("a journal of schema 1, which has no parameters, is read with all its rows and extended once") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  std::string sql = "PRAGMA journal_mode=WAL; PRAGMA application_id=0x43484f52; PRAGMA user_version=1;";
  for (auto const* table : {"workers", "epochs", "groups", "collectives", "decisions", "events", "counters"})
    sql += "CREATE TABLE " + std::string(table) +
           "(key TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, hash INTEGER NOT NULL) WITHOUT ROWID;";
  // A row and its hash as a coordinator of schema 1 wrote them.
  sql += R"(INSERT INTO epochs VALUES('g', '{"last":1}', -8241884684564090244);)";
  execute(path, sql.c_str());
  Rows const kept{{Table::epochs, "g", R"({"last":1})"}};
  CHECK(rows_of(path) == kept);
  CHECK(opened(path)->write(Rows{{Table::parameters, "p", "{}"}}).has_value());
  CHECK(rows_of(path) == Rows{kept.front(), {Table::parameters, "p", "{}"}});
}

TEST_CASE("a damaged journal of schema 1 is refused before it is extended") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  CHECK(opened(path)->write(Rows{{Table::epochs, "g", R"({"last":1})"}}).has_value());
  execute(path,
          "DROP TABLE parameters; DROP TABLE shards; DROP TABLE parameter_epochs; PRAGMA user_version=1;"
          "UPDATE epochs SET hash=hash+1");
  CHECK(refusal_of(path).code == JournalErrc::damaged);
}

TEST_CASE("a row that another program changed is refused by name") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  REQUIRE(opened(path)->write(Rows{row(1), row(2)}).has_value());
  execute(path, "UPDATE collectives SET body='{}' WHERE key='c-1002'");
  CHECK(refusal_of(path).code == JournalErrc::damaged);
  CHECK(says(refusal_of(path), "c-1002"));
}

TEST_CASE("a second coordinator cannot open a journal that is in use") {
  ScratchDirectory const here;
  auto const path = here / "journal";
  auto first = opened(path);
  CHECK(refusal_of(path).code == JournalErrc::in_use);
  first.reset();
  CHECK(taken_up(path).has_value());
}
