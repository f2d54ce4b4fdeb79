// Input from attackers and broken clients: each gets its problem or a closed connection, and the server goes on.
#include <doctest/doctest.h>

#include <array>

#include "http/testing/live_server.hpp"
#include "http/testing/raw_client.hpp"

using namespace chorus::http;
using namespace chorus::http::testing;
using std::chrono::milliseconds;

namespace {

std::string const host = "Host: h\r\n";

void check_answers(LiveServer& server) {
  RawClient client(server.port());
  client.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(client.reply().body == "hello\n");
}

// Sends the text and expects one problem with `code`, then the end of the connection.
void check_refused(LiveServer& server, std::string const& text, unsigned status, std::string_view code) {
  INFO(text.substr(0, 200));
  RawClient client(server.port());
  client.send(text);
  auto const reply = client.reply();
  CHECK(reply.status == status);
  CHECK(reply.fields.at("content-type") == "application/problem+json");
  CHECK(reply.fields.at("connection") == "close");
  CHECK(problem_from_json(reply.body, reply.status).code == parse_problem_code(code));
  client.end_of_sending();
  CHECK(client.rest() == "");
  check_answers(server);
}

ServerLimits impatient() {
  ServerLimits limits;
  limits.header_timeout = limits.idle_timeout = limits.body_stall_timeout = milliseconds(200);
  return limits;
}

}  // namespace

TEST_CASE("a request whose length is open to interpretation is refused and the connection closed") {
  LiveServer server;
  std::string const smuggled = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
  for (auto const& fields : std::array<std::string, 16>{
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
           "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n",
           "Transfer-Encoding: chunked, gzip\r\n",
           "Transfer-Encoding: gzip, chunked\r\n",
           "Transfer-Encoding: identity\r\n",
           "Transfer-Encoding: xchunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
           "Content-Length: 5\r\nContent-Length: 5\r\n",
           "Content-Length: 5\r\nContent-Length: 6\r\n",
           "Content-Length: 5, 5\r\n",
           "Content-Length: -5\r\n",
           "Content-Length: +5\r\n",
           "Content-Length: 99999999999999999999\r\n",
           "Content-Length: 0x5\r\n",
       })
    check_refused(server, "PUT /echo HTTP/1.1\r\n" + host + fields + "\r\n" + smuggled, 400, "bad_request");
  check_refused(server, "PUT /echo HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" + smuggled, 400,
                "bad_request");
}

TEST_CASE("input that is not HTTP/1.1 is refused") {
  LiveServer server;
  for (auto const& text : std::array<std::string, 16>{
           "GET /hello HTTP/1.1\r\n\r\n",                     // no Host
           "GET /hello HTTP/1.1\r\n" + host + host + "\r\n",  // two
           "GET /hello HTTP/2.0\r\n" + host + "\r\n",
           "GET /hello HTTP/1.2\r\n" + host + "\r\n",
           "GET /hello\r\n\r\n",
           "GET hello HTTP/1.1\r\n" + host + "\r\n",
           "GET  /hello HTTP/1.1\r\n" + host + "\r\n",
           "CONNECT h:80 HTTP/1.1\r\n" + host + "\r\n",
           "GET /hello HTTP/1.1\r\n" + host + "no colon\r\n\r\n",
           "GET /hello HTTP/1.1\r\n" + host + "space : x\r\n\r\n",
           "GET /hello HTTP/1.1\r\n" + host + "x: a\rb\r\n\r\n",
           "GET /%zz HTTP/1.1\r\n" + host + "\r\n",
           "GET /a%00b HTTP/1.1\r\n" + host + "\r\n",
           "GET /a?b=%0d%0ac HTTP/1.1\r\n" + host + "\r\n",
           "PUT /echo HTTP/1.1\r\n" + host + "Expect: 200-maybe\r\nContent-Length: 1\r\n\r\nx",
           "\r\n\r\n\r\n\r\n",
       })
    check_refused(server, text, 400, "bad_request");
}

TEST_CASE("a header that does not end is refused when it is too large") {
  LiveServer server;
  auto const large = std::string(9000, 'x');
  check_refused(server, "GET /" + large + " HTTP/1.1\r\n" + host + "\r\n", 431, "header_too_large");
  check_refused(server, "GET /" + large + large, 431, "header_too_large");
  check_refused(server, "GET / HTTP/1.1\r\n" + host + "X: " + large + "\r\n\r\n", 431, "header_too_large");
  std::string many = "GET / HTTP/1.1\r\n" + host;
  for (int i = 0; i < 3000; ++i) many += "a:\r\n";
  check_refused(server, many, 431, "header_too_large");
}

TEST_CASE("malformed chunks are refused") {
  LiveServer server;
  std::string const chunked = "PUT /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n";
  for (auto const* body : {"x\r\n", "5\r\nhello0\r\n\r\n", "-1\r\n", "5;", "fffffffffffffffff\r\n"}) {
    auto text = chunked + body;
    if (std::string_view(body).ends_with(';')) text += std::string(5000, 'e');
    check_refused(server, text, 400, "bad_request");
  }
  std::string many;
  for (int i = 0; i <= 65536; ++i) many += "1\r\nx\r\n";
  check_refused(server, chunked + many, 400, "bad_request");
}

TEST_CASE("a body above its limit is refused, announced or not") {
  LiveServer server;
  check_refused(server, "PUT /echo HTTP/1.1\r\n" + host + "Content-Length: 9223372036854775807\r\n\r\n", 413,
                "payload_too_large");
  check_refused(server, "PUT /echo HTTP/1.1\r\n" + host + "Content-Length: 1048577\r\n\r\n", 413, "payload_too_large");
  check_refused(server,
                "PUT /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n200000\r\n" +
                    std::string(0x200000, 'x') + "\r\n0\r\n\r\n",
                413, "payload_too_large");
}

TEST_CASE("a body that ends early is a bad request") {
  LiveServer server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
  client.end_of_sending();
  CHECK(client.reply().status == 400);
  CHECK(client.rest() == "");
  RawClient chunked(server.port());
  chunked.send("PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  chunked.end_of_sending();
  CHECK(chunked.reply().status == 400);
  check_answers(server);
}

TEST_CASE("wrong paths and methods keep the connection") {
  LiveServer server;
  RawClient client(server.port());
  client.send("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
  auto const missing = client.reply();
  CHECK(missing.status == 404);
  auto const problem = problem_from_json(missing.body, 404);
  CHECK(problem.code == ProblemCode::not_found);
  CHECK(problem.instance == "/nowhere");
  for (auto const* method : {"POST", "PATCH", "BREW"}) {
    client.send(std::string(method) + " /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxx");
    auto const wrong = client.reply();
    CHECK(wrong.status == 405);
    CHECK(wrong.fields.at("allow") == "GET, HEAD");
  }
  client.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(client.reply().status == 200);
  CHECK(server.connections_used() == 1);
}

TEST_CASE("a handler that throws answers 500 without its secret") {
  LiveServer server;
  RawClient client(server.port());
  client.send("GET /throw HTTP/1.1\r\nHost: h\r\n\r\n");
  auto const reply = client.reply();
  CHECK(reply.status == 500);
  CHECK(problem_from_json(reply.body, 500).code == ProblemCode::internal);
  CHECK(reply.body.find("secret") == std::string::npos);
  check_answers(server);
}

TEST_CASE("a field value cannot begin another field") {
  LiveServer server;
  RawClient client(server.port());
  client.send("GET /inject HTTP/1.1\r\nHost: h\r\n\r\n");
  auto const reply = client.reply();
  CHECK(reply.fields.at("location") == "/a  Set-Cookie: b");
  CHECK(reply.fields.count("set-cookie") == 0);
}

TEST_CASE("a silent client is dropped without a word, a slow one with 408") {
  LiveServer server(impatient());
  RawClient silent(server.port());
  CHECK(silent.rest() == "");

  RawClient slow(server.port());
  slow.send("GET /hel");
  CHECK(slow.reply().status == 408);
  CHECK(slow.rest() == "");

  RawClient kept(server.port());
  kept.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(kept.reply().status == 200);
  CHECK(kept.rest() == "");
  check_answers(server);
  CHECK(server.wait_for_connections(0));
}

TEST_CASE("a header that trickles in does not hold the connection") {
  LiveServer server(impatient());
  RawClient client(server.port());
  client.send("GET /hello HTTP/1.1\r\n");
  auto const begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000 && !client.readable_within(milliseconds(5)); ++i) client.send("a");
  CHECK(client.reply().status == 408);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("a body that stalls gets 408 with every framing") {
  LiveServer server(impatient());
  for (auto const* fields :
       {"Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "Transfer-Encoding: chunked\r\n\r\n5", "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n"}) {
    INFO(std::string(fields));
    RawClient client(server.port());
    client.send(std::string("PUT /echo HTTP/1.1\r\nHost: h\r\n") + fields);
    auto reply = client.reply();
    if (reply.status == 100) reply = client.reply();
    CHECK(reply.status == 408);
    CHECK(problem_from_json(reply.body, 408).code == ProblemCode::request_timeout);
    CHECK(client.rest() == "");
  }
  check_answers(server);
}

TEST_CASE("a body that trickles in gets 408 although it never stalls") {
  auto limits = impatient();
  limits.body_bytes_per_second_min = 1000000;
  LiveServer server(limits);
  RawClient client(server.port());
  client.send("PUT /store HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 2000 && !client.readable_within(milliseconds(5)); ++i) client.send("x");
  CHECK(client.reply().status == 408);
}

TEST_CASE("a client that does not read a large answer is dropped") {
  LiveServer server(impatient());
  RawClient client(server.port(), 4096);
  client.send("GET /payload/67108864 HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(server.wait_until_seen(1));
  CHECK(server.wait_for_connections(0));
  CHECK(client.rest().size() < 67108864);
}

TEST_CASE("connections above the limit get 503 with Retry-After, except on open routes") {
  ServerLimits limits;
  limits.connections = 2;
  LiveServer server(limits);
  RawClient first(server.port()), second(server.port());
  CHECK(server.wait_for_connections(2));
  {
    RawClient third(server.port());
    third.send("GET /not-open HTTP/1.1\r\nHost: h\r\n\r\n");
    auto const reply = third.reply();
    CHECK(reply.status == 503);
    CHECK(reply.fields.at("retry-after") == "1");
    CHECK(reply.fields.at("connection") == "close");
    CHECK(problem_from_json(reply.body, 503).code == ProblemCode::unavailable);
  }
  CHECK(server.wait_for_connections(2));
  {
    RawClient third(server.port());
    third.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    auto const reply = third.reply();
    CHECK(reply.status == 200);
    CHECK(reply.fields.at("connection") == "close");
  }
  CHECK(server.wait_for_connections(2));
  second.end_of_sending();
  CHECK(second.rest() == "");
  CHECK(server.wait_for_connections(1));
  check_answers(server);
}

TEST_CASE("stopping ends idle, receiving and handling sessions at once") {
  auto server = std::make_unique<LiveServer>();
  RawClient idle(server->port()), receiving(server->port()), handling(server->port()), header(server->port());
  receiving.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
  handling.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  header.send("GET /");
  CHECK(server->wait_for_connections(4));
  CHECK(server->wait_for_waiting(1));
  auto const begin = std::chrono::steady_clock::now();
  server->stop();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  CHECK(server->open_connections() == 0);
  for (auto* client : {&idle, &receiving, &handling, &header}) CHECK(client->rest() == "");
}
