// The journal as its callers see it: batches, waiting, failure and recovery.
#include <doctest/doctest.h>
#include <spdlog/sinks/null_sink.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <fstream>

#include "server/coordinator/journal/journal.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using chorus::testing::ScratchDirectory;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using boost::asio::awaitable;

namespace {

constexpr JournalPatience lazy_for_ever{std::chrono::hours(1), 20ms, std::chrono::hours(1)};

class Desk {
 public:
  explicit Desk(std::string const& path, JournalPatience patience = lazy_for_ever)
      : journal(
            io.get_executor(), path.empty() ? nullptr : JournalFile::open(path).value(), patience,
            [this](std::string_view point) { batches += point == "journal: before a write"; }, log) {
    journal.on_written([this](Journal::Clock::duration took) { reported += took.count() > 0; });
  }

  void tell(awaitable<void> story) {
    std::exception_ptr failure;
    boost::asio::co_spawn(io, live(std::move(story)), [&failure](std::exception_ptr thrown) { failure = thrown; });
    io.run();
    if (failure) std::rethrow_exception(failure);
  }

  void note(std::string key, std::string body = "{}") {
    journal.write({Table::workers, std::move(key), std::move(body)});
  }

  boost::asio::io_context io{1};
  spdlog::logger log{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  int batches = 0;
  int reported = 0;  // writes that were reported with a duration
  Journal journal;

 private:
  awaitable<void> live(awaitable<void> story) {
    journal.start();
    co_await std::move(story);
    co_await journal.stop();
  }
};

awaitable<void> share_a_batch(Desk* desk) {
  for (int number = 0; number < 100; ++number) desk->note("w" + std::to_string(number));
  CHECK(desk->journal.durable() == 0);
  CHECK_FALSE(co_await desk->journal.flush());
  CHECK(desk->journal.durable() == 100);
  CHECK(desk->batches == 1);
  CHECK(desk->reported == 1);
  CHECK_FALSE(co_await desk->journal.flush());
  CHECK(desk->batches == 1);
}

awaitable<void> replace(Desk* desk) {
  desk->note("w0", "1");
  desk->note("w0", "2");
  desk->journal.write({Table::workers, "w1", "3"});
  desk->journal.write({Table::workers, "w1", std::nullopt});
  co_return;
}

awaitable<void> made_late(Desk* desk) {
  int bodies = 0;
  auto const note = [&] {
    desk->journal.write(Table::groups, "g", [&] { return std::optional(std::to_string(++bodies)); });
  };
  for (int change = 0; change < 100; ++change) note();
  CHECK(desk->journal.durable() == 0);
  CHECK_FALSE(co_await desk->journal.flush());
  CHECK(desk->journal.durable() == 100);
  CHECK(bodies == 1);
  note();
  desk->journal.write({Table::groups, "g", "last"});
  CHECK_FALSE(co_await desk->journal.flush());
  CHECK(bodies == 1);
}

awaitable<void> in_memory(Desk* desk) {
  desk->note("w0");
  CHECK(desk->journal.durable() == 1);
  CHECK_FALSE(co_await desk->journal.flush());
  CHECK_FALSE(desk->journal.on_disk());
}

awaitable<void> look(Desk* desk, std::string path) {
  auto const until = std::chrono::steady_clock::now() + 10s;
  CHECK(::rename(path.c_str(), (path + "-kept").c_str()) == 0);
  { std::ofstream(path) << "of somebody else"; }
  while (!desk->journal.failure() && std::chrono::steady_clock::now() < until)
    co_await desk->journal.changed().wait_until(until);
  REQUIRE(desk->journal.failure());
  CHECK(desk->journal.failure()->detail.find("replaced by another file") != std::string::npos);
  CHECK(desk->batches == 0);
  CHECK(::rename((path + "-kept").c_str(), path.c_str()) == 0);
  while (desk->journal.failure() && std::chrono::steady_clock::now() < until)
    co_await desk->journal.changed().wait_until(until);
  CHECK_FALSE(desk->journal.failure());
  CHECK(desk->reported == 0);  // checks of the file are not reported as writes
}

awaitable<void> wait_lazily(Desk* desk) {
  desk->note("w0");
  auto const until = std::chrono::steady_clock::now() + 10s;
  while (desk->journal.durable() == 0 && std::chrono::steady_clock::now() < until)
    co_await desk->journal.changed().wait_until(until);
  CHECK(desk->journal.durable() == 1);
}

}  // namespace

TEST_CASE("rows noted together are one transaction, and flush() waits for one sync") {
  ScratchDirectory const here;
  Desk desk(here / "journal");
  desk.tell(share_a_batch(&desk));
}

TEST_CASE("the last row of a key is written, and stop() writes the remaining rows") {
  ScratchDirectory const here;
  {
    Desk desk(here / "journal");
    desk.tell(replace(&desk));
    CHECK(desk.batches == 1);
  }
  CHECK(JournalFile::open(here / "journal").value()->read().value() == std::vector<Row>{{Table::workers, "w0", "2"}});
}

TEST_CASE("a body that is made when it is written is made once, however often the row was noted") {
  ScratchDirectory const here;
  {
    Desk desk(here / "journal");
    desk.tell(made_late(&desk));
    CHECK(desk.batches == 2);
  }
  CHECK(JournalFile::open(here / "journal").value()->read().value() == std::vector<Row>{{Table::groups, "g", "last"}});
}

TEST_CASE("a replaced file is noticed while no rows are written, and so is its return") {
  ScratchDirectory const here;
  Desk desk(here / "journal", {std::chrono::hours(1), 20ms, 20ms});
  desk.tell(look(&desk, here / "journal"));
}

TEST_CASE("without a store every row is durable at once") {
  Desk desk("");
  desk.tell(in_memory(&desk));
}

TEST_CASE("rows for which no caller waits are written soon") {
  ScratchDirectory const here;
  Desk desk(here / "journal", {1ms, 20ms});
  desk.tell(wait_lazily(&desk));
}
