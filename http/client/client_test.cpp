#include "http/client/client.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <optional>

#include "http/testing/desk.hpp"
#include "http/testing/live_server.hpp"
#include "http/testing/scripted_server.hpp"
#include "http/wire/errc.hpp"

using namespace chorus;
using namespace chorus::http;
using namespace chorus::http::testing;
namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace {

std::string const ok_hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

}  // namespace

TEST_CASE("successive calls use one connection") {
  LiveServer server;
  Desk desk;
  for (int i = 0; i < 50; ++i) CHECK(desk.get(server.url("/hello"))->body == "hello\n");
  CHECK(desk.send(call(Method::put, server.url("/echo"), "text"))->body == "text");
  CHECK(desk.send(call(Method::head, server.url("/payload/100")))->body == "");
  CHECK(desk.get(server.url("/nowhere"))->status == 404);
  CHECK(desk.get(server.url("/hello"))->status == 200);
  CHECK(server.connections_used() == 1);
}

TEST_CASE("concurrent calls use connections of their own, and keep them") {
  LiveServer server;
  Desk desk;
  std::size_t answered = 0;
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 20; ++i)
      asio::co_spawn(desk.io, desk.client.send(call(Method::get, server.url("/hello")), soon()),
                     [&](std::exception_ptr, Result<Answer> const& answer) { answered += answer && answer->ok(); });
    desk.io.restart();
    desk.io.run();
  }
  CHECK(answered == 40);
  CHECK(server.connections_used() <= 20);
  CHECK(server.open_connections() <= 20);
}

TEST_CASE("a problem is received unchanged") {
  LiveServer server;
  Desk desk;
  auto const answer = desk.send(call(Method::put, server.url("/refuse"), "x")).value();
  CHECK(!answer.ok());
  auto const problem = answer.problem();
  CHECK(problem.code == ProblemCode::busy);
  CHECK(problem.detail == "a collective writes here");
  CHECK(problem.instance == "/refuse");
}

TEST_CASE("a large answer and a large body are exact") {
  LiveServer server;
  Desk desk;
  auto const bytes = pattern(8 << 20);
  std::string const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  CHECK(desk.get(server.url("/payload/8388608"))->body == text);
  CHECK(desk.send(call(Method::put, server.url("/store"), text))->status == 204);
  CHECK(server.take_stored() == bytes);
}

TEST_CASE("a payload is sent without a copy, and an answer is received into the destination") {
  LiveServer server;
  Desk desk;
  auto const bytes = pattern(1 << 20);
  auto request = call(Method::put, server.url("/store"));
  request.payload = bytes;
  CHECK(desk.send(request)->status == 204);
  CHECK(server.take_stored() == bytes);

  std::vector<std::byte> place(1 << 20);
  request = call(Method::get, server.url("/payload/1048576"));
  request.destination = place;
  auto const answer = desk.send(request);
  CHECK(answer->received_bytes == place.size());
  CHECK(answer->body.empty());
  CHECK(place == bytes);
  request.url = server.url("/payload/1048577");
  CHECK(code_of(desk.send(request)) == HttpErrc::too_large);
  request.url = server.url("/refuse");
  request.method = Method::put;
  CHECK(desk.send(request)->problem().code == ProblemCode::busy);
}

TEST_CASE("a payload in two parts is sent as one body, also with progress callbacks") {
  LiveServer server;
  Desk desk;
  auto const bytes = pattern(9 << 20);
  for (std::size_t const cut : {0UL, 1UL, 5UL << 20, bytes.size()}) {
    auto request = call(Method::put, server.url("/store"));
    request.payload = std::span(bytes).first(cut);
    request.payload_rest = std::span(bytes).subspan(cut);
    std::uint64_t sent = 0;
    if (cut % 2 == 1) request.on_sent = [&](std::uint64_t sent_bytes) { sent = sent_bytes; };
    CHECK(desk.send(request)->status == 204);
    CHECK(server.take_stored() == bytes);
    if (request.on_sent) CHECK(sent == bytes.size());
  }
  CHECK(server.connections_used() == 1);
}

TEST_CASE("progress callbacks report every sent piece and received bytes") {
  LiveServer server;
  Desk desk;
  constexpr std::uint64_t mebi = 1 << 20;
  auto const bytes = pattern(9 * mebi);
  auto request = call(Method::put, server.url("/store"));
  request.payload = bytes;
  std::vector<std::uint64_t> sent;
  request.on_sent = [&](std::uint64_t sent_bytes) { sent.push_back(sent_bytes); };
  CHECK(desk.send(request)->status == 204);
  CHECK(server.take_stored() == bytes);
  CHECK(sent == std::vector<std::uint64_t>{4 * mebi, 8 * mebi, 9 * mebi});

  std::vector<std::byte> place(9 * mebi);
  request = call(Method::get, server.url("/payload/" + std::to_string(place.size())));
  request.destination = place;
  std::vector<std::uint64_t> received;
  request.on_received = [&](std::uint64_t received_bytes) { received.push_back(received_bytes); };
  CHECK(desk.send(request)->ok());
  CHECK(place == bytes);
  CHECK(std::ranges::is_sorted(received));
  CHECK(received.back() == place.size());
  CHECK(server.connections_used() == 1);
}

TEST_CASE("a refused payload is not sent to its end") {
  LiveServer server;
  Desk desk;
  std::vector<std::byte> const bytes(256 << 20);  // more than the system buffers for a server that does not read
  auto request = call(Method::put, server.url("/refuse"));
  request.payload = bytes;
  std::uint64_t sent = 0;
  request.on_sent = [&](std::uint64_t sent_bytes) { sent = sent_bytes; };
  auto const answer = desk.send(request);
  REQUIRE_MESSAGE(answer.has_value(), answer.error().detail);
  CHECK(answer->problem().code == ProblemCode::busy);
  CHECK(sent < bytes.size());
  CHECK(desk.get(server.url("/hello"))->ok());
  CHECK(server.connections_used() == 2);
}

TEST_CASE("an interim answer does not end a payload") {
  Desk desk;
  ScriptedServer server({{"HTTP/1.1 102 Processing\r\n\r\n", ok_hello}});
  std::string const end = "\r\n\r\n";  // the script waits for this
  auto const text = std::string(9 << 20, 'x') + end;
  auto request = call(Method::put, server.url());
  request.payload = std::as_bytes(std::span(text));
  request.on_sent = [](std::uint64_t) {};
  CHECK(desk.send(request)->body == "hello");
  CHECK(server.requests().at(1).ends_with(end));
}

TEST_CASE("an answer above its limit is an error") {
  LiveServer server;
  Desk desk;
  auto request = call(Method::get, server.url("/payload/1001"));
  request.answer_limit_bytes = 1000;
  CHECK(code_of(desk.send(request)) == HttpErrc::too_large);
  request.url = server.url("/payload/1000");
  CHECK(desk.send(request)->body.size() == 1000);
  ScriptedServer endless({{"HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'x')}});
  request.url = endless.url();
  CHECK(code_of(desk.send(request)) == HttpErrc::too_large);
}

TEST_CASE("answers are understood in every framing") {
  Desk desk;
  ScriptedServer server(
      {{ok_hello, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: u\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok_hello,
        "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello"}});
  for (int i = 0; i < 3; ++i) CHECK(desk.get(server.url())->body == "hello");
  CHECK(desk.get(server.url())->status == 204);
  CHECK(desk.get(server.url())->status == 304);
  CHECK(desk.get(server.url())->body == "hello");
  CHECK(server.requests().size() == 6);
}

TEST_CASE("malformed answers are errors that name the URL") {
  Desk desk;
  for (auto const* text :
       {"ICMP/1.1 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"}) {
    INFO(std::string(text));
    ScriptedServer server({{text}});
    auto const answer = desk.get(server.url("/path"));
    CHECK(code_of(answer) == HttpErrc::malformed);
    CHECK(answer.error().detail.starts_with(server.url("/path") + ": "));
  }
  for (auto const* text : {"HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    INFO(std::string(text));
    ScriptedServer server({{text}});
    CHECK(code_of(desk.get(server.url())) == HttpErrc::peer_closed);
  }
}

TEST_CASE("a connection that the server closed while it was idle costs nothing") {
  ServerLimits limits;
  limits.idle_timeout = milliseconds(200);
  LiveServer server(limits);
  Desk desk;
  CHECK(desk.get(server.url("/hello"))->ok());
  CHECK(server.wait_for_connections(0));
  CHECK(desk.send(call(Method::put, server.url("/echo"), "x"))->ok());
  CHECK(server.connections_used() == 2);
}

TEST_CASE("a request on a kept connection that closes without an answer is repeated once if that is harmless") {
  Desk desk;
  ScriptedServer idempotent({{ok_hello, ""}, {ok_hello}});
  CHECK(desk.get(idempotent.url())->body == "hello");
  CHECK(desk.send(call(Method::put, idempotent.url(), "x"))->body == "hello");
  CHECK(idempotent.requests().size() == 3);

  ScriptedServer once({{ok_hello, ""}});
  CHECK(desk.get(once.url())->body == "hello");
  CHECK(code_of(desk.send(call(Method::post, once.url(), "x"))) == HttpErrc::peer_closed);
  CHECK(once.requests().size() == 2);

  ScriptedServer repeatable({{ok_hello, ""}, {ok_hello}});
  CHECK(desk.get(repeatable.url())->body == "hello");
  auto push = call(Method::post, repeatable.url(), "x");
  push.repeatable = true;
  CHECK(desk.send(push)->body == "hello");

  ScriptedServer begun({{ok_hello, "H"}});
  CHECK(desk.get(begun.url())->body == "hello");
  CHECK(code_of(desk.get(begun.url())) == HttpErrc::peer_closed);
  CHECK(begun.requests().size() == 2);

  ScriptedServer fresh({{""}});
  CHECK(code_of(desk.get(fresh.url())) == HttpErrc::peer_closed);
  CHECK(fresh.requests().size() == 1);
}

TEST_CASE("the request is what the server expects") {
  Desk desk;
  ScriptedServer server({{ok_hello, ok_hello}});
  auto post = call(Method::post, server.url("/a?b=c"), "{}");
  post.fields.add("X-Evil", "a\r\nX: b");
  CHECK(desk.send(post)->ok());
  CHECK(desk.get(server.url(""))->ok());
  auto const requests = server.requests();
  auto const host = "Host: " + server.url("").substr(7) + "\r\n";
  CHECK(requests.at(0) == "POST /a?b=c HTTP/1.1\r\n" + host +
                              "X-Evil: a  X: b\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}");
  CHECK(requests.at(1) == "GET / HTTP/1.1\r\n" + host + "\r\n");
}

TEST_CASE("a refused connection is an error with the address") {
  Desk desk;
  auto const answer = desk.get("http://127.0.0.1:1/");
  CHECK(code_of(answer) == HttpErrc::connect_failed);
  CHECK(answer.error().detail == "http://127.0.0.1:1/: connection refused");
  CHECK(code_of(desk.get("ftp://127.0.0.1:1/")) == HttpErrc::bad_url);
}

TEST_CASE("names are resolved") {
  LiveServer server;
  Desk desk;
  auto const answer = desk.get("http://localhost:" + std::to_string(server.port()) + "/hello");
  REQUIRE_MESSAGE(answer.has_value(), answer.error().detail);
  CHECK(answer->body == "hello\n");
}

TEST_CASE("an upgrade returns the socket and early bytes") {
  LiveServer server;
  Desk desk;
  auto upgraded = desk.upgrade(server.url("/upgrade"), "test/1");
  REQUIRE(upgraded.has_value());
  std::string text = upgraded->connection.early_bytes;
  boost::system::error_code error;
  asio::read(upgraded->connection.socket, asio::dynamic_buffer(text), error);
  CHECK(text == "early:");

  ScriptedServer eager({{"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n\r\nearly"}});
  auto early = desk.upgrade(eager.url(), "test/1");
  REQUIRE(early.has_value());
  text = early->connection.early_bytes;
  asio::read(early->connection.socket, asio::dynamic_buffer(text), error);
  CHECK(text == "early");
}

TEST_CASE("a refused upgrade reports the reason") {
  LiveServer server;
  Desk desk;
  auto const refused = desk.upgrade(server.url("/upgrade"), "test/2");
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == HttpErrc::refused_upgrade);
  CHECK(refused.error().detail == server.url("/upgrade") + ": 409 plan_mismatch: only test/1 here");
  ScriptedServer other({{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"}});
  CHECK(desk.upgrade(other.url(), "test/1").error().code == HttpErrc::malformed);
}
