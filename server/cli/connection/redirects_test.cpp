// Whom the command line asks after a redirect, and what it says when nobody answers there.
#include <doctest/doctest.h>

#include "http/testing/scripted_server.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus::cli;
using chorus::http::testing::ScriptedServer;

namespace {

constexpr auto no_workers = R"({"items":[]})";
constexpr auto listing = "GET /v1/workers?limit=1000";
constexpr auto listed = "/v1/workers?limit=1000";

Run list_workers(std::string const& coordinators) {
  return chorus::cli::chorus({"--coordinator", coordinators, "workers"});
}

std::string message(std::string const& head, std::string const& body) {
  return "HTTP/1.1 " + head + "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

}  // namespace

TEST_CASE("a standby's redirect is followed, over several hops, with the whole path") {
  FakeCoordinator leader, next, standby;
  leader.answer(listing, 200, no_workers);
  next.redirect(listing, leader.url + listed);
  standby.redirect(listing, next.url + listed);
  CHECK(list_workers(standby.url).status == 0);
  CHECK(leader.questions() == std::vector<std::string>{listing});
}

TEST_CASE("a leader that does not answer is named together with the standby that names it") {
  FakeCoordinator standby;
  standby.redirect(listing, "http://127.0.0.1:1" + std::string(listed));
  auto const run = list_workers(standby.url);
  CHECK(run.status == 3);
  CHECK(run.err.find("cannot reach the coordinator at http://127.0.0.1:1: nobody listens there; " + standby.url +
                     " redirects to it") != std::string::npos);
}

TEST_CASE("after a standby whose leader has died the next coordinator of the list is asked") {
  FakeCoordinator standby, leader;
  standby.redirect(listing, "http://127.0.0.1:1" + std::string(listed));
  leader.answer(listing, 200, no_workers);
  CHECK(list_workers(standby.url + "," + leader.url).status == 0);
}

TEST_CASE("a coordinator that knows of no leader is passed over; if no other one answers it is told") {
  FakeCoordinator knows_none, leader;
  knows_none.answer(listing, 503, R"({"code":"unavailable","status":503,"detail":"no coordinator leads at present"})");
  leader.answer(listing, 200, no_workers);
  CHECK(list_workers(knows_none.url + "," + leader.url).status == 0);
  auto const run = list_workers(knows_none.url + ",http://127.0.0.1:1");
  CHECK(run.status == 1);
  CHECK(run.err.find("no coordinator leads at present") != std::string::npos);
}

TEST_CASE("coordinators that redirect to each other are a cluster without a leader") {
  FakeCoordinator one, other, third;
  one.redirect(listing, other.url + listed);
  other.redirect(listing, one.url + listed);
  auto const run = list_workers(one.url);
  CHECK(run.status == 1);
  CHECK(run.err.find("no coordinator leads at present: " + other.url + " redirects to " + one.url) !=
        std::string::npos);
  CHECK(one.questions().size() == 1);
  one.redirect(listing, listed);
  CHECK(list_workers(one.url).err.find("leads at present: " + one.url + " redirects to itself") != std::string::npos);
  third.answer(listing, 200, no_workers);
  CHECK(list_workers(one.url + "," + third.url).status == 0);
}

TEST_CASE("a run whose answer was lost waits until a coordinator leads that had redirected to itself") {
  auto const done = R"({"id":"c","state":"succeeded","request":{"group":"g","op":"all_reduce","tensor":"x"}})";
  ScriptedServer takes_over({{""},
                             {message("307 Temporary Redirect\r\nLocation: /v1/collectives/c?wait=60000ms", "")},
                             {message("200 OK", done)}});
  auto const run = chorus::cli::chorus({"run", "all_reduce", "--group", "g", "--tensor", "x", "--id", "c", "--wait",
                                        "60s", "--coordinator", takes_over.url("")});
  INFO(run.err);
  CHECK(run.status == 0);
  CHECK(takes_over.requests().size() == 3);
}
