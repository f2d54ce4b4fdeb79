// Behaviour on which well-behaved clients rely.
#include "http/server/server.hpp"

#include <doctest/doctest.h>
#include <httplib.h>

#include "http/testing/live_server.hpp"
#include "http/testing/raw_client.hpp"
#include "http/wire/errc.hpp"

using namespace chorus::http;
using namespace chorus::http::testing;

namespace {

std::string get(std::string const& path) { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

std::string put(std::string const& path, std::string const& body, std::string const& fields = "") {
  return "PUT " + path + " HTTP/1.1\r\nHost: h\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string_view text_of(std::vector<std::byte> const& bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

constexpr std::size_t large_bytes = 32 << 20;

}  // namespace

TEST_CASE("requests on one connection are answered in order, also when they arrive together") {
  LiveServer server;
  RawClient client(server.port());
  std::string pipelined;
  for (int i = 0; i < 100; ++i) pipelined += put("/echo", "body " + std::to_string(i)) + get("/hello");
  client.send(pipelined);
  for (int i = 0; i < 100; ++i) {
    CHECK(client.reply().body == "body " + std::to_string(i));
    CHECK(client.reply().body == "hello\n");
  }
  CHECK(server.connections_used() == 1);
}

TEST_CASE("a request that arrives byte by byte is a request") {
  LiveServer server;
  RawClient client(server.port());
  for (char c : put("/echo", "hello")) client.send({&c, 1});
  CHECK(client.reply().body == "hello");
  for (char c : std::string("PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n"))
    client.send({&c, 1});
  CHECK(client.reply().body == "hello");
  client.send(get("/hello"));
  CHECK(client.reply().body == "hello\n");
}

TEST_CASE("answers carry what clients need") {
  LiveServer server;
  RawClient client(server.port());
  client.send(get("/hello"));
  auto const reply = client.reply();
  CHECK(reply.status == 200);
  CHECK(reply.fields.at("content-type") == "text/plain; charset=utf-8");
  CHECK(reply.fields.at("content-length") == "6");
  CHECK(reply.fields.at("server") == "chorus");
  CHECK(reply.fields.count("connection") == 0);
  client.send(put("/ignore", ""));
  auto const empty = client.reply();
  CHECK(empty.status == 204);
  CHECK(empty.fields.count("content-length") == 0);
  CHECK(server.wait_until_seen(2));
  auto const seen = server.seen();
  CHECK(seen.at(0).route == "/hello");
  CHECK(seen.at(1).method == Method::put);
  CHECK(seen.at(1).status == 204);
}

TEST_CASE("HEAD is answered like GET, without the body") {
  LiveServer server;
  RawClient client(server.port());
  client.send("HEAD /payload/1000 HTTP/1.1\r\nHost: h\r\n\r\n" + get("/hello"));
  auto const head = client.reply(true);
  CHECK(head.status == 200);
  CHECK(head.fields.at("content-length") == "1000");
  CHECK(client.reply().body == "hello\n");
}

TEST_CASE("the client decides how long a connection lives") {
  LiveServer server;
  RawClient closing(server.port());
  closing.send("GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  auto const last = closing.reply();
  CHECK(last.fields.at("connection") == "close");
  CHECK(closing.rest() == "");
  RawClient old(server.port());
  old.send("GET /hello HTTP/1.0\r\n\r\n");
  CHECK(old.reply().fields.at("connection") == "close");
  CHECK(old.rest() == "");
  RawClient old_kept(server.port());
  old_kept.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(old_kept.reply().fields.at("connection") == "keep-alive");
  old_kept.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(old_kept.reply().status == 200);
}

TEST_CASE("100 Continue comes when the handler reads, and not when it refuses") {
  LiveServer server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  CHECK(client.reply().status == 100);
  client.send("hello");
  CHECK(client.reply().body == "hello");
  // A client that does not wait gets no interim answer.
  client.send(put("/echo", "hello", "Expect: 100-continue\r\n"));
  CHECK(client.reply().status == 200);
  client.send("PUT /refuse HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  auto const refused = client.reply();
  CHECK(refused.status == 409);
  // The server cannot know whether the five bytes will come.
  CHECK(refused.fields.at("connection") == "close");
}

TEST_CASE("a body that the handler did not read is skipped if it is small") {
  LiveServer server;
  RawClient client(server.port());
  client.send(put("/ignore", std::string(65536, 'x')) + get("/hello"));
  CHECK(client.reply().status == 204);
  CHECK(client.reply().status == 200);
  client.send("PUT /ignore HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" +
              get("/hello"));
  CHECK(client.reply().status == 204);
  CHECK(client.reply().status == 200);
  client.send(put("/exactly/3", "hello") + get("/hello"));
  CHECK(client.reply().body == "hel");
  CHECK(client.reply().status == 200);
}

TEST_CASE("a refusal reaches a client that is still sending a large body") {
  LiveServer server;
  RawClient client(server.port());
  client.send(put("/refuse", std::string(8 << 20, 'x')));
  auto const reply = client.reply();
  CHECK(reply.status == 409);
  CHECK(reply.fields.at("connection") == "close");
  client.end_of_sending();
  CHECK(client.rest() == "");
}

TEST_CASE("a read of an exact size fails on a shorter or longer body") {
  LiveServer server;
  RawClient client(server.port());
  client.send(put("/exactly/0", "") + put("/exactly/5", "hello"));
  CHECK(client.reply().body == "");
  CHECK(client.reply().body == "hello");
  client.send(put("/exactly/6", "hello"));
  CHECK(client.reply().status == 400);
  client.send("PUT /exactly/6 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  CHECK(client.reply().status == 422);
  client.send(
      "PUT /exactly/5 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
  CHECK(client.reply().body == "hello");
}

TEST_CASE("a large body arrives and is sent back unchanged") {
  LiveServer server;
  RawClient client(server.port());
  auto const bytes = pattern(large_bytes);
  client.send(put("/store", std::string(text_of(bytes))));
  CHECK(client.reply().status == 204);
  CHECK(server.take_stored() == bytes);
  client.send(get("/payload/" + std::to_string(large_bytes)));
  CHECK(client.reply().body == text_of(bytes));
}

TEST_CASE("an upgrade hands over the connection with what the client had sent early") {
  LiveServer server;
  RawClient client(server.port());
  client.send("GET /upgrade HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n\r\nfirst frame");
  auto const reply = client.reply();
  CHECK(reply.status == 101);
  CHECK(reply.fields.at("upgrade") == "test/1");
  CHECK(reply.fields.count("content-length") == 0);
  CHECK(client.rest() == "early:first frame");
  CHECK(server.wait_for_connections(0));

  RawClient with_body(server.port());
  with_body.send(
      "GET /upgrade HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: test/1\r\nContent-Length: 2\r\n\r\nxx");
  CHECK(with_body.reply().status == 400);
}

TEST_CASE("a port that is taken is an error that says so") {
  LiveServer server;
  boost::asio::io_context io;
  Router const router;
  Server second(io.get_executor(), router, {}, {});
  auto const port = second.listen("127.0.0.1", server.port());
  REQUIRE(port.has_error());
  CHECK(port.error().code == HttpErrc::bind_failed);
  CHECK(port.error().detail == "127.0.0.1:" + std::to_string(server.port()) + ": Address already in use");
  CHECK(second.listen("256.0.0.1", 0).has_error());
}

TEST_CASE("an independent client agrees") {
  LiveServer server;
  httplib::Client client("127.0.0.1", server.port());
  client.set_keep_alive(true);
  CHECK(client.Get("/hello")->body == "hello\n");
  CHECK(client.Head("/hello")->get_header_value("Content-Length") == "6");
  CHECK(client.Put("/echo", "abc", "text/plain")->body == "abc");
  auto const large = pattern(4 << 20);
  CHECK(client.Put("/store", std::string(text_of(large)), "application/octet-stream")->status == 204);
  CHECK(server.take_stored() == large);
  CHECK(client.Get("/payload/4194304")->body == text_of(large));
  auto const chunked = client.Put(
      "/echo",
      [](std::size_t, httplib::DataSink& sink) {
        sink.write("in ", 3);
        sink.write("chunks", 6);
        sink.done();
        return true;
      },
      "text/plain");
  CHECK(chunked->body == "in chunks");
  CHECK(client.Get("/nowhere")->status == 404);
  CHECK(client.Put("/refuse", std::string(1 << 20, 'x'), "text/plain")->status == 409);
  CHECK(client.Get("/hello")->body == "hello\n");
}

TEST_CASE("a body produced piece by piece is sent in chunks, and the connection goes on") {
  LiveServer server;
  httplib::Client client("127.0.0.1", server.port());
  client.set_keep_alive(true);
  for (int time = 0; time < 2; ++time) {
    auto const answer = client.Get("/stream/3");
    REQUIRE(answer);
    CHECK(answer->body == "piece 3\npiece 2\npiece 1\n");
    CHECK(answer->get_header_value("Transfer-Encoding") == "chunked");
    CHECK_FALSE(answer->has_header("Content-Length"));
  }
  CHECK(server.connections_used() == 1);
  CHECK(server.wait_for_the_end_of_streams());
}

TEST_CASE("a client of HTTP/1.0 gets a stream without chunks that ends with the connection; HEAD gets no body") {
  LiveServer server;
  RawClient old(server.port());
  old.send("GET /stream/2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  auto const all = old.rest();
  CHECK(all.find("chunked") == std::string::npos);
  CHECK(all.ends_with("\r\n\r\npiece 2\npiece 1\n"));
  RawClient client(server.port());
  client.send("HEAD /stream/2 HTTP/1.1\r\nHost: h\r\n\r\n" + get("/hello"));
  CHECK(client.reply(true).fields.at("transfer-encoding") == "chunked");
  CHECK(client.reply().body == "hello\n");
}

TEST_CASE("a stream of known length is sent as a body of that length, and the connection goes on") {
  LiveServer server;
  RawClient client(server.port());
  client.send("GET /stream/2?length=16 HTTP/1.1\r\nHost: h\r\n\r\n");
  auto const whole = client.reply();
  CHECK(whole.fields.at("content-length") == "16");
  CHECK_FALSE(whole.fields.contains("transfer-encoding"));
  CHECK(whole.body == "piece 2\npiece 1\n");
  client.send("HEAD /stream/2?length=16 HTTP/1.1\r\nHost: h\r\n\r\n" + get("/hello"));
  CHECK(client.reply(true).fields.at("content-length") == "16");
  CHECK(client.reply().body == "hello\n");
}

TEST_CASE("a stream that ends before its length ends the connection, so that no client takes it for complete") {
  LiveServer server;
  RawClient client(server.port());
  client.send("GET /stream/2?length=17 HTTP/1.1\r\nHost: h\r\n\r\n" + get("/hello"));
  auto const all = client.rest();
  CHECK(all.find("Content-Length: 17") != std::string::npos);
  CHECK(all.ends_with("\r\n\r\npiece 2\npiece 1\n"));
}

TEST_CASE("a client that reads slowly but steadily gets all of a large answer") {
  ServerLimits limits;
  limits.body_stall_timeout = std::chrono::milliseconds(100);
  LiveServer server(limits);
  constexpr std::size_t bytes = 6'000'000;
  for (auto const& path : {"/payload/" + std::to_string(bytes), std::string("/stream/0")}) {
    CAPTURE(path);
    RawClient slow(server.port(), 256 << 10);
    slow.read_slowly(std::chrono::milliseconds(20));
    slow.send(get(path));
    CHECK(slow.receive_until(bytes));
  }
}

TEST_CASE("a client that does not read its stream is dropped") {
  ServerLimits limits;
  limits.body_stall_timeout = std::chrono::milliseconds(50);
  LiveServer server(limits);
  RawClient stuck(server.port(), 4096);
  stuck.send(get("/stream/0"));
  CHECK(server.wait_until_seen(1));  // when its head has been sent
  CHECK(server.wait_for_connections(0));
  CHECK(server.wait_for_the_end_of_streams());
}

TEST_CASE("streams end when the server stops") {
  LiveServer server;
  RawClient client(server.port(), 4096);
  client.send(get("/stream/0"));
  CHECK(server.wait_until_seen(1));
  server.stop();
  CHECK(server.wait_for_the_end_of_streams());
}
