// Messages that the network changes between workers.
#include "http/wire/message_checksum.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "http/client/peer_client.hpp"
#include "http/testing/live_server.hpp"
#include "http/testing/raw_client.hpp"
#include "http/testing/scripted_server.hpp"
#include "http/wire/errc.hpp"

using namespace chorus;
using namespace chorus::http;
using namespace chorus::http::testing;
namespace asio = boost::asio;

namespace {

std::string const body = "0123456789abcdef";

std::string signed_request() {
  Fields fields;
  fields.set("Chorus-Sequence", "17");
  auto const checksum = checksum_of("PUT /echo", fields, std::as_bytes(std::span(body)));
  return "PUT /echo HTTP/1.1\r\nHost: localhost\r\nChorus-Sequence: 17\r\nChorus-Message-Crc32c: " + to_text(checksum) +
         "\r\nContent-Length: 16\r\n\r\n" + body;
}

std::string signed_answer(std::string const& text) {
  Fields fields;
  fields.set("ETag", "\"1.2\"");
  auto const checksum = checksum_of("200", fields, std::as_bytes(std::span(text)));
  return "HTTP/1.1 200 OK\r\nETag: \"1.2\"\r\nChorus-Message-Crc32c: " + to_text(checksum) +
         "\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
}

std::string changed(std::string message, std::string_view from, std::string_view to) {
  return message.replace(message.find(from), from.size(), to);
}

asio::awaitable<void> ask(PeerClient peer, Call call, std::optional<Result<Answer>>& answer) {
  answer.emplace(co_await peer.send(std::move(call), std::chrono::steady_clock::now() + std::chrono::seconds(10)));
}

// Sends the body with PUT.
Result<Answer> put(std::string url, MessageChecksums checksums) {
  asio::io_context io{1};
  Client client(io.get_executor());
  Call call;
  call.method = Method::put;
  call.url = std::move(url);
  call.body = body;
  std::optional<Result<Answer>> answer;
  asio::co_spawn(io, ask({client, checksums}, call, answer), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  while (!answer) io.run_one();
  client.close();
  return std::move(*answer);
}

bool mentions_checksum(std::string const& request) { return request.find(message_checksum_field) != std::string::npos; }

}  // namespace

TEST_CASE("the worked example of the page") {
  Fields fields;
  fields.set("Chorus-Sequence", "17");
  fields.set("Host", "anything");
  auto const checksum = checksum_of("PUT /echo", fields, std::as_bytes(std::span(body)));
  CHECK(to_text(checksum) == "42d3119e-2cc6015f");
  CHECK(parse_message_checksum(to_text(checksum))->head == checksum.head);
  CHECK_FALSE(parse_message_checksum("1234567-12345678"));
  CHECK_FALSE(parse_message_checksum("12345678-1234567g"));
}

TEST_CASE("other work runs while the checksum of a long body is computed") {
  std::string const text(64 << 20, 'x');
  Fields fields;
  asio::io_context io{1};
  auto checksum =
      asio::co_spawn(io, checksum_in_turns("200", fields, std::as_bytes(std::span(text))), asio::use_future);
  int handlers = 0;
  while (io.poll_one() != 0) ++handlers;
  CHECK(handlers >= 16);
  CHECK(to_text(checksum.get()) == to_text(checksum_of("200", fields, std::as_bytes(std::span(text)))));
}

TEST_CASE("a request with any bit flipped is refused, or does what was meant") {
  ServerLimits limits;
  limits.header_timeout = limits.body_stall_timeout = std::chrono::milliseconds(30);
  LiveServer server(limits);
  auto const request = signed_request();
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * request.size(); ++bit) {
    CAPTURE(bit);
    auto turned = request;
    turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ 1 << bit % 8);
    RawClient client(server.port());
    client.send(turned);
    client.end_of_sending();
    auto const answer = client.rest();
    bool const is_done = answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n" + body);
    bool const is_refused = answer.empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5");
    CHECK((is_done || is_refused));
    // The number of the push and its content are never changed without a refusal.
    bool const is_content = bit / 8 >= request.size() - body.size();
    bool const is_sequence = bit / 8 - request.find("17\r\n") < 2;
    if (is_content || is_sequence) CHECK(answer.starts_with("HTTP/1.1 4"));
    if (is_refused) ++refused;
  }
  CHECK(refused > 8 * (body.size() + 17));
}

TEST_CASE("a connection is not used again after a changed message") {
  LiveServer server;
  RawClient client(server.port());
  client.send(changed(signed_request(), body, "0123456789abcdeF") + "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto const answer = client.rest();
  CHECK(answer.starts_with("HTTP/1.1 422"));
  CHECK(answer.find("digest_mismatch") != std::string::npos);
  CHECK(answer.find("HTTP/1.1 200") == std::string::npos);
}

TEST_CASE("peers send checksums if configured, and verify those of answers") {
  LiveServer server;
  CHECK(put(server.url("/echo"), MessageChecksums::on)->body == body);
  ScriptedServer off({{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}}),
      on({{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}});
  CHECK(put(off.url(), MessageChecksums::automatic).has_value());  // to a loopback address
  CHECK_FALSE(mentions_checksum(off.requests().at(0)));
  CHECK(put(on.url(), MessageChecksums::on).has_value());
  CHECK(mentions_checksum(on.requests().at(0)));
}

TEST_CASE("a changed answer, and a request that arrived changed, are repeated") {
  auto const right = signed_answer("hello");
  ScriptedServer server({{changed(right, "hello", "hallo")},
                         {"HTTP/1.1 422 Unprocessable\r\nContent-Length: 26\r\n\r\n{\"code\":\"digest_mismatch\"}"},
                         {right}});
  auto const answer = put(server.url(), MessageChecksums::on);
  REQUIRE(answer.has_value());
  CHECK(answer->body == "hello");
  CHECK(server.requests().size() == 3);
}

TEST_CASE("an answer that is changed each time is an error") {
  auto const right = signed_answer("hello");
  for (auto const& wrong :
       {changed(right, "hello", "hellO"), changed(right, "1.2", "1.3"), changed(right, "200", "201")}) {
    ScriptedServer server({{wrong}, {wrong}, {wrong}});
    auto const answer = put(server.url(), MessageChecksums::on);
    REQUIRE(answer.has_error());
    CHECK(answer.error().code == HttpErrc::malformed);
    CHECK(answer.error().detail.find("changed on its way") != std::string::npos);
  }
}
