// Tests whether a server knows that a client has its answer.
#include "http/message/reception.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "http/testing/live_server.hpp"
#include "http/testing/raw_client.hpp"

using namespace chorus::http;
using namespace chorus::http::testing;
using State = Reception::State;

namespace {

std::string ask_to_be_heard(std::string const& fields = "") {
  return "PUT /heard HTTP/1.1\r\nHost: h\r\n" + fields + "Content-Length: 0\r\n\r\n";
}

// Waits until the state is `expected`, or no longer open.
State reception(LiveServer& server, std::size_t request, State expected) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  auto state = server.reception(request);
  while (state != expected && state == State::open && std::chrono::steady_clock::now() < until)
    state = server.reception(request);
  return state;
}

}  // namespace

TEST_CASE("a client that waits is present, and one that asks again on the connection has its answer") {
  LiveServer server;
  RawClient client(server.port());
  client.send(ask_to_be_heard());
  REQUIRE(server.wait_for_waiting(1));
  CHECK(server.reception(0) == State::open);
  server.answer_heard();
  CHECK(client.reply().status == 204);
  CHECK(server.reception(0) == State::open);
  client.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(client.reply().status == 200);
  CHECK(server.reception(0) == State::taken);
}

TEST_CASE("a client that reads its answer and closes has it, whichever side was to close first") {
  for (auto const* fields : {"", "Connection: close\r\n"}) {
    LiveServer server;
    auto client = std::make_unique<RawClient>(server.port());
    client->send(ask_to_be_heard(fields));
    REQUIRE(server.wait_for_waiting(1));
    server.answer_heard();
    CHECK(client->reply().status == 204);
    client.reset();
    CHECK(reception(server, 0, State::taken) == State::taken);
  }
}

TEST_CASE("a client that closes before its answer, on one side or both, does not have it") {
  for (bool const wholly : {false, true}) {
    LiveServer server;
    auto client = std::make_unique<RawClient>(server.port());
    client->send(ask_to_be_heard());
    REQUIRE(server.wait_for_waiting(1));
    if (wholly)
      client.reset();
    else
      client->end_of_sending();
    // The state is also asked before anything was written.
    CHECK(reception(server, 0, State::broken) == State::broken);
    server.answer_heard();
    REQUIRE(server.wait_until_seen(1));
    CHECK(server.reception(0) == State::broken);
  }
}

TEST_CASE(
    "a client that closes before its answer is noticed when the answer is sent, even if the state was not asked") {
  LiveServer server;
  auto client = std::make_unique<RawClient>(server.port());
  client->send(ask_to_be_heard());
  REQUIRE(server.wait_for_waiting(1));
  client.reset();
  server.answer_heard();
  REQUIRE(server.wait_for_connections(0));
  CHECK(server.reception(0) == State::broken);
}

TEST_CASE("an answer that lies unread when its client closes is not taken: the system resets the connection") {
  for (auto const* fields : {"", "Connection: close\r\n"}) {
    LiveServer server;
    auto client = std::make_unique<RawClient>(server.port());
    client->send(ask_to_be_heard(fields));
    REQUIRE(server.wait_for_waiting(1));
    server.answer_heard();
    REQUIRE(client->readable_within(std::chrono::seconds(10)));
    client.reset();
    CHECK(reception(server, 0, State::broken) == State::broken);
  }
}

TEST_CASE("requests that came before the answer say nothing about it") {
  LiveServer server;
  auto client = std::make_unique<RawClient>(server.port());
  client->send(ask_to_be_heard() + "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  REQUIRE(server.wait_for_waiting(1));
  server.answer_heard();
  REQUIRE(server.wait_until_seen(2));
  CHECK(server.reception(0) == State::open);
  client.reset();
  CHECK(reception(server, 0, State::broken) == State::broken);
}

TEST_CASE("a request that only waits ends when its client has gone, and one that may change something runs on") {
  ServerLimits limits;
  limits.header_timeout = std::chrono::milliseconds(80);  // looks eight times as often
  for (bool const wholly : {false, true}) {
    LiveServer server(limits);
    std::vector<std::unique_ptr<RawClient>> clients;
    for (auto const* request :
         {"PUT /heard?wait=10m", "GET /wait", "GET /wait?wait=10m", "HEAD /wait?wait=10m", "GET /silence"}) {
      clients.push_back(std::make_unique<RawClient>(server.port()));
      clients.back()->send(std::string(request) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
      REQUIRE(server.wait_for_waiting(clients.size()));
    }
    RawClient patient(server.port());
    patient.send("GET /wait?wait=10m HTTP/1.1\r\nHost: h\r\n\r\n");
    REQUIRE(server.wait_for_waiting(clients.size() + 1));
    // The first two go first. When the others are found to have gone, so would be the first two.
    for (auto& client : clients) {
      if (wholly)
        client.reset();
      else
        client->end_of_sending();
    }
    CHECK(server.wait_for_connections(3));
    CHECK(server.wait_for_the_end_of_streams());
    CHECK(server.reception(0) == State::broken);
    CHECK_FALSE(patient.readable_within(std::chrono::milliseconds(0)));
    server.answer_heard();
    CHECK(server.wait_for_connections(2));
  }
}

TEST_CASE("a repetition under an Idempotency-Key ends when its client has gone, and the first request runs on") {
  ServerLimits limits;
  limits.header_timeout = std::chrono::milliseconds(80);
  LiveServer server(limits);
  auto const ask = [&server] {
    auto client = std::make_unique<RawClient>(server.port());
    client->send("POST /once HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n");
    return client;
  };
  auto first = ask();
  REQUIRE(server.wait_for_waiting(1));
  auto const patient = ask();
  std::vector<std::unique_ptr<RawClient>> abandoned;
  for (int i = 0; i < 20; ++i) abandoned.push_back(ask());
  REQUIRE(server.wait_for_connections(22));
  first.reset();
  abandoned.clear();
  CHECK(server.wait_for_connections(2));
  CHECK_FALSE(patient->readable_within(std::chrono::milliseconds(0)));
  server.answer_heard();
  CHECK(patient->readable_within(std::chrono::seconds(10)));
  CHECK(server.wait_for_connections(1));
}

TEST_CASE("a server that stops leaves no doubt that the answer was not taken") {
  LiveServer server;
  RawClient client(server.port());
  client.send(ask_to_be_heard());
  REQUIRE(server.wait_for_waiting(1));
  server.stop();
  CHECK(server.reception(0) == State::broken);
}
