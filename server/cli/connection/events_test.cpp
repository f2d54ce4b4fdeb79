// chorus events, and its parts.
#include <doctest/doctest.h>

#include "http/api/cluster/events.hpp"
#include "http/json/json.hpp"
#include "http/testing/scripted_server.hpp"
#include "server/cli/connection/event_stream.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus;
using namespace chorus::cli;

namespace {

api::Event event(std::uint64_t sequence, std::string type) {
  api::Event made;
  made.sequence = sequence;
  made.type = std::move(type);
  made.at = "2026-01-01T00:00:00.000Z";
  made.worker = "w0";
  return made;
}

constexpr std::string_view log = "9c1f0a52b7d3e864-";

std::string sent(api::Event const& e) {
  return "id: " + std::string(log) + std::to_string(e.sequence) + "\nevent: " + e.type + "\ndata: " + http::encode(e) +
         "\n\n";
}

Run events(FakeCoordinator& coordinator, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "events");
  return chorus::cli::chorus(arguments, {"CHORUS_COORDINATOR=" + coordinator.url});
}

}  // namespace

TEST_CASE("events are complete, wherever the bytes are cut") {
  auto const text = sent(event(7, "worker.joined")) + ": a comment\n\n" + sent(event(8, "worker.lost"));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EventStream stream;
    auto got = stream.feed(text.substr(0, cut));
    for (auto& one : stream.feed(text.substr(cut))) got.push_back(std::move(one));
    REQUIRE(got.size() == 2);
    CHECK(got[0].id == "9c1f0a52b7d3e864-7");
    CHECK(got[1].id == "9c1f0a52b7d3e864-8");
    CHECK(got[1].type == "worker.lost");
    CHECK(got[1].data == http::encode(event(8, "worker.lost")));
  }
}

TEST_CASE("chorus events follows, and resumes after the last event that it has seen") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/events?since=6", 200, sent(event(7, "worker.joined")));
  coordinator.answer("GET /v1/events?since=6 after 9c1f0a52b7d3e864-7", 200, sent(event(8, "worker.lost")));
  auto const run = events(coordinator, {"--since", "6", "--count", "2"});
  CHECK(run.status == 0);
  CHECK(run.out == "7  2026-01-01T00:00:00.000Z  worker.joined  w0\n8  2026-01-01T00:00:00.000Z  worker.lost  w0\n");
}

TEST_CASE("chorus events continues with a coordinator that has another log, and says so") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/events", 200, sent(event(7, "worker.joined")));
  coordinator.answer("GET /v1/events after 9c1f0a52b7d3e864-7", 200,
                     "id: 00000000000000aa-0\nevent: reset\ndata: {\"sequence\":0,\"detail\":\"another log\"}\n\n"
                     "id: 00000000000000aa-1\nevent: worker.lost\ndata: " +
                         http::encode(event(1, "worker.lost")) + "\n\n");
  auto const run = events(coordinator, {"--count", "2"});
  CHECK(run.status == 0);
  CHECK(run.out == "7  2026-01-01T00:00:00.000Z  worker.joined  w0\n1  2026-01-01T00:00:00.000Z  worker.lost  w0\n");
  CHECK(run.err == "the stream begins anew: another log\n");
}

TEST_CASE("chorus events follows over a time in which no coordinator leads") {
  auto const stream = [](api::Event const& one) {
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + sent(one);
  };
  std::string const problem = R"({"code":"unavailable","status":503,"detail":"no coordinator leads at present"})";
  auto const refusal =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: " + std::to_string(problem.size()) +
      "\r\n\r\n" + problem;
  std::string const circle =
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/events\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  http::testing::ScriptedServer coordinator(
      {{stream(event(7, "worker.joined"))}, {refusal}, {circle}, {stream(event(8, "worker.lost"))}});
  auto const run = chorus::cli::chorus({"events", "--count", "2", "--coordinator", coordinator.url("")});
  INFO(run.err);
  CHECK(run.status == 0);
  CHECK(lines_of(run.out).size() == 2);
  CHECK(coordinator.requests().back().find("Last-Event-ID: 9c1f0a52b7d3e864-7") != std::string::npos);
}

TEST_CASE("chorus events follows over a time in which a proxy finds no coordinator") {
  auto const stream = [](api::Event const& one) {
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + sent(one);
  };
  auto const failed = [](std::string const& status) {
    std::string const page = "<html><h1>" + status + "</h1></html>";
    return "HTTP/1.1 " + status +
           "\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: " + std::to_string(page.size()) +
           "\r\n\r\n" + page;
  };
  http::testing::ScriptedServer proxy({{stream(event(7, "worker.joined"))},
                                       {failed("502 Bad Gateway")},
                                       {failed("503 Service Unavailable")},
                                       {failed("504 Gateway Timeout")},
                                       {stream(event(8, "worker.lost"))}});
  auto const run = chorus::cli::chorus({"events", "--count", "2", "--coordinator", proxy.url("")});
  INFO(run.err);
  CHECK(run.status == 0);
  CHECK(lines_of(run.out).size() == 2);
}

TEST_CASE("chorus events passes over a coordinator that knows of no leader, and one in a circle") {
  FakeCoordinator knows_none, circle, leader;
  knows_none.answer("GET /v1/events", 503, R"({"code":"unavailable","status":503,"detail":"none leads"})");
  circle.redirect("GET /v1/events", "/v1/events");
  leader.answer("GET /v1/events", 200, sent(event(7, "worker.joined")));
  auto const urls = knows_none.url + "," + circle.url + "," + leader.url;
  CHECK(chorus::cli::chorus({"events", "--count", "1", "--coordinator", urls}).status == 0);
  CHECK(chorus::cli::chorus({"events", "--count", "1", "--coordinator", knows_none.url}).status == 1);
}

TEST_CASE("chorus events says why it cannot continue") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/events?since=1", 410, R"({"code":"compacted","detail":"the oldest is 9","status":410})");
  auto const run = events(coordinator, {"--since", "1"});
  CHECK(run.status == 1);
  CHECK(run.err.find("the oldest is 9") != std::string::npos);
  CHECK(chorus::cli::chorus({"events", "--coordinator", "http://127.0.0.1:1"}).status == 3);
}

TEST_CASE("chorus events --no-follow shows every page and ends") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/events?limit=1000", 200,
                     http::encode(api::EventList{{event(1, "worker.joined")}, "1", {}}));
  coordinator.answer("GET /v1/events?limit=1000&cursor=1", 200,
                     http::encode(api::EventList{{event(2, "worker.left")}, std::nullopt, {}}));
  auto const run = events(coordinator, {"--no-follow", "--json"});
  CHECK(run.status == 0);
  CHECK(run.out == http::encode(event(1, "worker.joined")) + "\n" + http::encode(event(2, "worker.left")) + "\n");
}
