#include "base/logging/log.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <boost/json.hpp>
#include <sstream>

using namespace chorus;

namespace {

struct Written {
  explicit Written(logging::Format format, std::vector<logging::Field> always = {}) {
    logging::configure(log, format, std::move(always));
  }
  [[nodiscard]] boost::json::object json() const { return boost::json::parse(lines.str()).as_object(); }

  std::ostringstream lines;
  spdlog::logger log{"worker", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines, true)};
};

}  // namespace

TEST_CASE("as text a line ends with its fields") {
  Written w(logging::Format::text);
  logging::warn(w.log, "run.stalled", "nothing moves", {{"run", 7U}, {"group", "g"}, {"epoch", 2U}, {"trace_id", ""}});
  CHECK(w.lines.str().ends_with("[worker] [warning] nothing moves run=7 group=g epoch=2\n"));
}

TEST_CASE("an event is one line, even if text from outside has line breaks") {
  Written text(logging::Format::text), json(logging::Format::json);
  for (auto* const w : {&text, &json}) {
    w->log.warn("cannot join: {}", "<html>\r\n<b>\x1b[31m404\x7f</b>\n\n");
    auto const lines = w->lines.str();
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 1);
    CHECK(lines.find('\x1b') == std::string::npos);
  }
  CHECK(text.lines.str().ends_with("cannot join: <html>\\r\\n<b>\\x1b[31m404\\x7f</b>\\n\\n\n"));
  Written fields(logging::Format::text);
  logging::warn(fields.log, "e", "said", {{"detail", "a\nb"}});
  CHECK(fields.lines.str().ends_with("said detail=a\\nb\n"));
}

TEST_CASE("as JSON a line is one object with these names") {
  Written w(logging::Format::json, {{"worker", "w3"}});
  logging::warn(w.log, "run.stalled", "nothing \"moves\"\n", {{"run", 7U}, {"group", "g"}, {"for_s", 2.5}});
  auto const line = w.json();
  CHECK(line.at("event") == "run.stalled");
  CHECK(line.at("level") == "warning");
  CHECK(line.at("service") == "worker");
  CHECK(line.at("worker") == "w3");
  CHECK(line.at("run") == 7);
  CHECK(line.at("for_s") == 2.5);
  CHECK(line.at("message") == "nothing \"moves\"\n");
  CHECK(line.at("ts").as_string().ends_with("Z"));
  CHECK_FALSE(line.contains("epoch"));
}

TEST_CASE("a line of a library is JSON, too, and marks within text are no fields") {
  Written plain(logging::Format::json);
  plain.log.info("{} of {}", 1, 2);
  CHECK(plain.json().at("message") == "1 of 2");
  CHECK(plain.json().at("event") == "log");
  Written w(logging::Format::json);
  logging::info(w.log, "e",
                "a\x1e"
                "b",
                {{"detail",
                  "c\x1e\x1f"
                  "d"}});
  CHECK(w.json().at("message") == "a b");
  CHECK(w.json().at("detail") == "c  d");
}

TEST_CASE("lines below the level are not written") {
  Written w(logging::Format::text);
  w.log.set_level(spdlog::level::warn);
  logging::info(w.log, "e", "nothing", {});
  CHECK(w.lines.str().empty());
}
