// Answers for clients that accept gzip, and the Date of every answer.
#include "http/message/compressed.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <memory>
#include <span>

#include "http/message/http_date.hpp"
#include "http/testing/live_server.hpp"
#include "http/testing/raw_client.hpp"

using namespace chorus::http;
using namespace chorus::http::testing;

namespace {

// An answer to an HTTP/1.0 request: the body lasts until the connection closes.
struct Told {
  std::string head, body;
};
Told echo(std::string const& text, std::string const& fields) {
  LiveServer const server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.0\r\n" + fields + "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
  auto const all = client.rest();
  auto const end = all.find("\r\n\r\n");
  REQUIRE(end != std::string::npos);
  return {all.substr(0, end + 2), all.substr(end + 4)};
}

std::string unzipped(std::string const& bytes) {
  z_stream state{};
  REQUIRE(::inflateInit2(&state, 15 + 16) == Z_OK);
  std::string in = bytes, out(4 << 20, '\0');
  state.next_in = reinterpret_cast<Bytef*>(in.data());
  state.avail_in = static_cast<uInt>(in.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  CHECK(::inflate(&state, Z_FINISH) == Z_STREAM_END);
  CHECK(state.avail_in == 0);
  out.resize(state.total_out);
  ::inflateEnd(&state);
  return out;
}

std::string numbers(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i * 7919) + " ";
  text.resize(bytes);
  return text;
}

}  // namespace

TEST_CASE("text is gzip for clients that accept it, in one piece or several, and plain for others") {
  for (std::size_t const bytes : {1024UL, 5000UL, 131072UL, 131073UL, 1048576UL}) {
    CAPTURE(bytes);
    auto const text = numbers(bytes);
    auto const zipped = echo(text, "Accept-Encoding: br, gzip\r\n");
    CHECK(zipped.head.find("\r\nContent-Encoding: gzip\r\n") != std::string::npos);
    CHECK(zipped.head.find("\r\nVary: Accept-Encoding\r\n") != std::string::npos);
    CHECK(zipped.body.size() < bytes * 2 / 3);
    CHECK(unzipped(zipped.body) == text);
    auto const plain = echo(text, "");
    CHECK(plain.head.find("Content-Encoding") == std::string::npos);
    CHECK(plain.head.find("\r\nVary: Accept-Encoding\r\n") != std::string::npos);
    CHECK(plain.body == text);
  }
}

TEST_CASE("short answers stay plain") {
  auto const told = echo(numbers(1023), "Accept-Encoding: gzip\r\n");
  CHECK(told.head.find("Content-Encoding") == std::string::npos);
  CHECK(told.body == numbers(1023));
}

TEST_CASE("bytes, partial content and streams stay plain, and the tag of compressed text is weak") {
  Request request;
  request.fields.set("Accept-Encoding", "gzip");
  auto const encoding = [&](Response response) {
    compress_if_wanted(request, response);
    return std::string(response.fields.find("Content-Encoding").value_or("none"));
  };
  auto const text = Response::json(200, numbers(4096));
  CHECK(encoding(text) == "gzip");
  auto bytes = text, part = text, encoded = text, tagged = text;
  bytes.fields.set("Content-Type", "application/octet-stream");
  CHECK(encoding(bytes) == "none");
  part.status = 206;
  CHECK(encoding(part) == "none");
  encoded.fields.set("Content-Encoding", "br");
  CHECK(encoding(encoded) == "br");
  tagged.fields.set("ETag", "\"7\"");
  compress_if_wanted(request, tagged);
  CHECK(tagged.fields.find("ETag") == "W/\"7\"");
}

TEST_CASE("shared bytes are sent compressed, and not plain as well") {
  Request request;
  request.fields.set("Accept-Encoding", "gzip");
  Response response(200);
  response.fields.set("Content-Type", "text/javascript");
  auto const text = std::make_shared<std::string>(numbers(5000));
  response.payload = {text, std::as_bytes(std::span(*text))};
  compress_if_wanted(request, response);
  CHECK(response.fields.find("Content-Encoding") == "gzip");
  CHECK(response.stream);
  CHECK(response.payload.bytes.empty());
  CHECK(response.body.empty());
}

TEST_CASE("Accept-Encoding allows gzip by name or with a star, unless its weight is 0") {
  for (auto const* field : {"gzip", "GZIP", "x-gzip", "br, gzip;q=0.5", "*", "deflate, *;q=0.1", "gzip ; q=1"})
    CHECK(accepts_gzip(field));
  for (auto const* field : {"", "br", "identity", "gzip;q=0", "gzip;q=0.0, br", "*;q=0", "*, gzip;q=0", "gzipped"})
    CHECK_FALSE(accepts_gzip(field));
}

TEST_CASE("every answer has a Date, also refusals") {
  CHECK(http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(http_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
  LiveServer const server;
  RawClient client(server.port());
  for (auto const* path : {"/hello", "/nothing"}) {
    auto const before = std::time(nullptr);
    client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    auto const date = client.reply().fields.at("date");
    bool is_now = false;
    for (auto second = before; second <= std::time(nullptr); ++second) is_now = is_now || http_date(second) == date;
    CHECK(is_now);
  }
}
