// Commands whose answer is lost: the request is repeated with the same key.
#include <doctest/doctest.h>

#include "http/testing/scripted_server.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus::cli;
using chorus::http::testing::ScriptedServer;

namespace {

std::string answer_with(std::string const& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string failed_by_proxy(std::string const& status) {
  std::string const page = "<html><h1>" + status + "</h1></html>";
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: " + std::to_string(page.size()) +
         "\r\n\r\n" + page;
}

std::string key_in(std::string const& request) {
  std::string const field = "Idempotency-Key: ";
  auto const begin = request.find(field);
  return begin == std::string::npos ? "" : request.substr(begin, request.find("\r\n", begin) - begin);
}

// Returns the requests to a server that closes two connections without an answer, and then sends `answer`.
std::vector<std::string> asked_by(std::vector<std::string> arguments, std::string const& answer, int status) {
  ScriptedServer server({{""}, {""}, {answer_with(answer)}});
  arguments.insert(arguments.end(), {"--coordinator", server.url(""), "--json"});
  auto const run = chorus::cli::chorus(arguments);
  INFO(run.err);
  CHECK(run.status == status);
  return server.requests();
}

constexpr auto a_success = R"({"id":"c","state":"succeeded","request":{"group":"g","op":"all_reduce","tensor":"x"}})";

}  // namespace

TEST_CASE("run and groups create repeat a request with the same key if the connection ends without an answer") {
  auto const group = R"({"name":"g","epoch":1,"state":"ready","members":[]})";
  for (auto const& requests : {asked_by({"run", "all_reduce", "--group", "g", "--tensor", "x"}, a_success, 0),
                               asked_by({"groups", "create", "g", "--size", "2"}, group, 0)}) {
    REQUIRE(requests.size() == 3);
    CHECK_FALSE(key_in(requests[0]).empty());
    CHECK(key_in(requests[0]) == key_in(requests[1]));
    CHECK(key_in(requests[0]) == key_in(requests[2]));
  }
}

TEST_CASE("after a lost answer, coordinators that are refused or led by none are asked again") {
  std::string const problem = R"({"code":"unavailable","status":503,"detail":"no coordinator leads at present"})";
  auto const no_leader =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: " + std::to_string(problem.size()) +
      "\r\n\r\n" + problem;
  ScriptedServer dies({{""}});
  ScriptedServer takes_over({{no_leader}, {no_leader}, {answer_with(a_success)}});
  auto const run = chorus::cli::chorus(
      {"run", "all_reduce", "--group", "g", "--tensor", "x", "--coordinator", dies.url("") + "," + takes_over.url("")});
  INFO(run.err);
  CHECK(run.status == 0);
  auto const lost = dies.requests();
  auto const repeated = takes_over.requests();
  REQUIRE(lost.size() == 1);
  REQUIRE(repeated.size() == 3);
  CHECK(key_in(repeated.back()) == key_in(lost.front()));
}

TEST_CASE("a run whose answer stays lost may have been launched, and is told so") {
  auto const told = [](std::vector<std::string> more) {
    ScriptedServer server({{""}, {""}, {""}, {""}});
    std::vector<std::string> arguments{"run",      "all_reduce", "--group",       "g",
                                       "--tensor", "x",          "--coordinator", server.url("")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto const run = chorus::cli::chorus(arguments);
    CHECK(run.status == 3);
    CHECK(server.requests().size() == 4);
    return run.err;
  };
  std::string const lost = "the connection ended without an answer; the request may have been carried out: ";
  CHECK(told({}).find(lost + "typed again, it would be another one; with --id ID it would be the same") !=
        std::string::npos);
  CHECK(told({"--id", "c"}).find(lost + "typing it again shows the collective") != std::string::npos);
}

TEST_CASE(
    "a proxy that has lost its coordinator has lost an answer: the request is repeated, here or at the next one") {
  std::vector<std::string> const run_it{"run", "all_reduce", "--group", "g", "--tensor", "x", "--coordinator"};
  auto const run_at = [&](std::string const& coordinators) {
    auto arguments = run_it;
    arguments.push_back(coordinators);
    return chorus::cli::chorus(arguments);
  };
  auto const bad = failed_by_proxy("502 Bad Gateway"), late = failed_by_proxy("504 Gateway Timeout");
  ScriptedServer comes_back({{bad}, {late}, {answer_with(a_success)}});
  CHECK(run_at(comes_back.url("")).status == 0);
  auto const asked = comes_back.requests();
  REQUIRE(asked.size() == 3);
  CHECK(key_in(asked.front()) == key_in(asked.back()));

  ScriptedServer stays_away({{bad}});
  ScriptedServer next({{answer_with(a_success)}});
  CHECK(run_at(stays_away.url("") + "," + next.url("")).status == 0);
  CHECK(key_in(stays_away.requests().at(0)) == key_in(next.requests().at(0)));

  ScriptedServer never({{late}, {late}, {late}, {late}});
  auto const lost = run_at(never.url(""));
  CHECK(lost.status == 1);
  CHECK(lost.err.find("504 Gateway Timeout") != std::string::npos);
  CHECK(lost.err.find("the request may have been carried out") != std::string::npos);
}

TEST_CASE("two runs have two keys, and a run with an id needs none") {
  auto const first = asked_by({"run", "all_reduce", "--group", "g", "--tensor", "x"}, a_success, 0);
  auto const second = asked_by({"run", "all_reduce", "--group", "g", "--tensor", "x"}, a_success, 0);
  CHECK(key_in(first.at(0)) != key_in(second.at(0)));
  auto const named = asked_by({"run", "all_reduce", "--group", "g", "--tensor", "x", "--id", "c"}, a_success, 0);
  REQUIRE(named.size() == 3);
  CHECK(named[0].starts_with("PUT /v1/collectives/c?"));
  CHECK(key_in(named[0]).empty());
}
