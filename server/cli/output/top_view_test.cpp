#include "server/cli/output/top_view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "server/cli/testing/test_support.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::mentions;

namespace {

Snapshot cluster_of(std::size_t workers, std::size_t collectives) {
  Snapshot now;
  now.coordinator = "http://127.0.0.1:7070";
  now.at = "2026-11-22T01:00:00Z";
  for (std::size_t i = 0; i < workers; ++i) {
    api::Worker worker;
    worker.id = "w" + std::to_string(i);
    worker.state = i == 7 ? "lost" : "ready";
    now.workers.push_back(worker);
  }
  for (std::size_t i = 0; i < collectives; ++i) {
    api::Collective one;
    one.id = "c" + std::to_string(i);
    one.state = i == 5 ? "running" : "succeeded";
    one.bytes = 4096;
    one.seconds = 0.001;
    if (i == 5)
      one.stalled.emplace().text = "nothing has moved for 2.0 s: waiting for rank 7 ('w7'), which does not answer";
    now.collectives.push_back(one);
  }
  return now;
}

}  // namespace

TEST_CASE("all content fits into 80 by 24, including every problem") {
  for (std::size_t const workers : {0, 1, 8, 500})
    for (std::size_t const collectives : {0, 1, 6, 20}) {
      CAPTURE(workers);
      CAPTURE(collectives);
      auto const screen = top_screen(cluster_of(workers, collectives), {80, 24});
      auto const lines = lines_of(screen);
      CHECK(lines.size() <= 24);
      CHECK(std::ranges::all_of(lines, [](auto const& line) { return line.size() <= 80; }));
      if (workers > 7) CHECK(mentions(screen, "LOST"));
      if (collectives > 5) CHECK(mentions(screen, "STALLED"));
      if (workers == 500) CHECK(mentions(screen, "more"));
    }
}

TEST_CASE("a terminal of a few lines shows the summary") {
  auto const lines = lines_of(top_screen(cluster_of(8, 6), {40, 3}));
  REQUIRE(lines.size() >= 2);
  CHECK(lines.size() <= 3);
  CHECK(mentions(lines[1], "7 of 8 workers ready"));
}

TEST_CASE("control characters are not sent to the terminal, and multi-byte characters are not cut") {
  auto now = cluster_of(1, 0);
  now.coordinator = "\x1b[2J\a";
  now.workers[0].locality.host = "m\xc3\xbchle";
  auto const screen = top_screen(now, {80, 24});
  CHECK(mentions(screen, "chorus top  ?[2J?"));
  CHECK(screen.back() != '\n');  // a line end would scroll the first line of a full screen away
  auto const line = lines_of(screen).back();
  auto const cut = line.find("\xc3\xbc");
  REQUIRE(cut != std::string::npos);
  CHECK(lines_of(top_screen(now, {cut + 1, 24})).back() == line.substr(0, cut + 2));
}

TEST_CASE("a coordinator that does not answer is reported") {
  auto now = cluster_of(0, 0);
  now.failure = "cannot reach the coordinator";
  CHECK(mentions(top_screen(now, {80, 24}), "no answer: cannot reach the coordinator"));
  CHECK(boost::json::parse(top_json(now)).at("failure") == "cannot reach the coordinator");
}

TEST_CASE("the JSON form is one line") {
  auto const text = top_json(cluster_of(8, 6));
  CHECK(text.find('\n') == std::string::npos);
  auto const json = boost::json::parse(text);
  CHECK(json.at("workers") == 8);
  CHECK(json.at("ready") == 7);
  CHECK(json.at("lost").at(0) == "w7");
  CHECK(json.at("stalled") == 1);
  CHECK(json.at("running").at(0).at("id") == "c5");
}
