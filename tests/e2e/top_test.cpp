// `chorus top` on a terminal: the screen at two sizes, and the state of the terminal afterwards.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/terminal.hpp"

using namespace chorus::testing;

namespace {

std::vector<std::string> top_of(std::string const& url, std::string const& interval = "200ms") {
  return {binary("chorus"), "--coordinator", url, "top", "--interval", interval};
}

// Joins more workers than any screen here has lines, so that every line is used.
void join_many(Service const& coordinator, std::size_t workers) {
  for (std::size_t i = 0; i < workers; ++i) {
    auto const id = "pretended-" + std::to_string(i);
    auto const joined = coordinator.post(
        "/v1/workers", R"({"id":")" + id + R"(","incarnation":"0000000000000001","url":")" + coordinator.url + R"(",)" +
                           R"("version":"1","locality":{"region":"r","zone":"z","rack":"k","host":"h"}})");
    REQUIRE(joined.status / 100 == 2);
  }
}

bool is_restored(Terminal& terminal) {
  return !terminal.is_raw() && !terminal.screen().is_second() && !terminal.screen().hides_cursor();
}

}  // namespace

TEST_CASE("top fills the screen from its first line to its last, and follows a change of the screen's size") {
  Service const coordinator("coordinator", {binary("chorus-coordinator"), "--port", "0", "--lease-ms", "600000"});
  join_many(coordinator, 60);
  Terminal terminal(top_of(coordinator.url), 80, 24);
  REQUIRE(terminal.shows("workers ready"));
  CHECK(terminal.is_raw());
  CHECK(terminal.screen().is_second());
  for (auto const& [columns, rows] : {std::pair{80, 24}, {60, 15}, {100, 40}}) {
    CAPTURE(rows);
    terminal.resize(static_cast<std::size_t>(columns), static_cast<std::size_t>(rows));
    REQUIRE(terminal.shows("workers ready"));
    auto const hidden = std::to_string(60 - (rows - 5)) + " more";  // title, summary, blank, head, this line
    CHECK(terminal.shows("... and " + hidden));
    auto const lines = terminal.screen().lines();
    INFO(terminal.screen().text());
    CHECK(lines.front().starts_with("chorus top  http://127.0.0.1"));
    CHECK(lines.at(1) == "60 of 60 workers ready, 0 groups, 0 running");
    CHECK(lines.at(3).starts_with("WORKER"));
    CHECK(
        std::ranges::all_of(lines, [&](auto const& line) { return line.size() <= static_cast<std::size_t>(columns); }));
  }
  terminal.press("q");
  CHECK(terminal.wait() == 0);
  CHECK(is_restored(terminal));
}

TEST_CASE("the end of top restores the terminal") {
  Cluster cluster(1);
  for (auto const* how : {"q", "\x03", "SIGTERM", "SIGHUP"}) {
    CAPTURE(how);
    Terminal terminal(top_of(cluster.coordinator.url), 80, 24);
    REQUIRE(terminal.shows("w0"));
    CHECK(terminal.is_raw());
    if (how == std::string("SIGTERM"))
      terminal.signal(SIGTERM);
    else if (how == std::string("SIGHUP"))
      terminal.signal(SIGHUP);
    else
      terminal.press(how);
    CHECK(terminal.wait() == 0);
    CHECK(is_restored(terminal));
  }
}

TEST_CASE("top without pauses ends as well") {
  Cluster cluster(1);
  for (bool const is_signal : {false, true}) {
    Terminal terminal(top_of(cluster.coordinator.url, "0s"), 80, 24);
    REQUIRE(terminal.shows("w0"));
    if (is_signal)
      terminal.signal(SIGTERM);
    else
      terminal.press("q");
    CHECK(terminal.wait() == 0);
    CHECK(is_restored(terminal));
  }
}

TEST_CASE("top reports a coordinator that has ended, and follows it again when it is back") {
  Cluster cluster(1);
  Terminal terminal(top_of(cluster.coordinator.url), 80, 24);
  REQUIRE(terminal.shows("1 of 1 worker ready"));
  cluster.coordinator.process.signal(SIGKILL);
  cluster.coordinator.process.wait();
  REQUIRE(terminal.shows("no answer: "));
  CHECK(terminal.screen().lines().front().starts_with("chorus top  "));
  Service const again("coordinator", {binary("chorus-coordinator"), "--port", cluster.coordinator_port.text()});
  CHECK(terminal.shows("1 of 1 worker ready"));
  CHECK(terminal.shows("w0"));
  terminal.press("q");
  CHECK(terminal.wait() == 0);
}
