// Pure parsers: targets, ranges, framing, chunks, URLs.
#include <doctest/doctest.h>

#include <array>
#include <charconv>

#include "base/ascii.hpp"
#include "http/client/client.hpp"
#include "http/message/framing.hpp"
#include "http/message/range.hpp"
#include "http/message/target.hpp"
#include "http/wire/chunk_decoder.hpp"
#include "http/wire/errc.hpp"

using namespace chorus;
using namespace chorus::http;

namespace {

Fields fields(std::initializer_list<std::pair<char const*, char const*>> list) {
  Fields result;
  for (auto const& [name, value] : list) result.add(name, value);
  return result;
}

Checked<Framing> request(std::initializer_list<std::pair<char const*, char const*>> list) {
  auto with_host = fields(list);
  with_host.add("Host", "h");
  return request_framing(Version::http_1_1, with_host);
}

bool refused(Checked<Framing> const& framing) {
  return framing.has_error() && framing.error().code == ProblemCode::bad_request;
}

// Feeds the text in pieces of `step` bytes and collects the data, as a reader of a socket would.
struct Decoded {
  std::string data;
  ChunkDecoder::State state;
  std::size_t left_bytes;
};
Decoded decoded(std::string_view text, std::size_t step = 1) {
  ChunkDecoder decoder;
  Decoded result{};
  std::string_view left = text;
  std::string buffer;
  for (;;) {
    auto const fed = decoder.feed(buffer);
    buffer.erase(0, fed);
    if (decoder.state() == ChunkDecoder::State::data && !buffer.empty()) {
      auto const taken = std::min<std::uint64_t>(buffer.size(), decoder.data_bytes());
      result.data += buffer.substr(0, taken);
      buffer.erase(0, taken);
      decoder.took(taken);
      continue;
    }
    if (decoder.state() == ChunkDecoder::State::done || decoder.state() == ChunkDecoder::State::malformed) break;
    if (left.empty()) break;
    buffer += left.substr(0, step);
    left.remove_prefix(std::min(step, left.size()));
  }
  result.state = decoder.state();
  result.left_bytes = buffer.size() + left.size();
  return result;
}

std::string chunks(std::size_t count, std::string const& data) {
  std::array<char, 16> size{};
  auto const end = std::to_chars(size.begin(), size.end(), data.size(), 16).ptr;
  auto const chunk = std::string(size.begin(), end) + "\r\n" + data + "\r\n";
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += chunk;
  return all;
}

}  // namespace

TEST_CASE("a target is a decoded path and a decoded query") {
  auto const target = parse_target("/v1/tensors/grad%2F0%20x?cursor=a%26b&wait=30s&flag&=v&&e=").value();
  CHECK(target.path == "/v1/tensors/grad/0 x");
  REQUIRE(target.query.size() == 5);
  CHECK(target.query[0] == std::pair<std::string, std::string>("cursor", "a&b"));
  CHECK(target.query[1] == std::pair<std::string, std::string>("wait", "30s"));
  CHECK(target.query[2] == std::pair<std::string, std::string>("flag", ""));
  CHECK(target.query[3] == std::pair<std::string, std::string>("", "v"));
  CHECK(target.query[4] == std::pair<std::string, std::string>("e", ""));
  CHECK(parse_target("http://host:1/a?b=c")->path == "/a");
  CHECK(parse_target("HTTP://host/a")->path == "/a");
  CHECK(raw_path("/a%2Fb/c?d") == "/a%2Fb/c");
}

TEST_CASE("a target that is not a path, or hides control characters, is refused") {
  for (auto const* text :
       {"",        "*",         "a",         "host:80", "http://host", "http://host?x", "ftp://host/a",   "/%",
        "/%1",     "/%zz",      "/%1g",      "/%+1",    "/%-1",        "/%00",          "/a%0d%0aSet: x", "/a%7f",
        "/ok?a=%", "/ok?a=%00", "/ok?%0a=1", "/\x01"}) {
    INFO(std::string(text));
    auto const target = parse_target(text);
    REQUIRE(target.has_error());
    CHECK(target.error().code == ProblemCode::bad_request);
  }
}

TEST_CASE("a range is cut to what exists") {
  CHECK(parse_range("bytes=2-5", 10).value() == ByteRange{2, 4});
  CHECK(parse_range("bytes=2-", 10).value() == ByteRange{2, 8});
  CHECK(parse_range("bytes=-4", 10).value() == ByteRange{6, 4});
  CHECK(parse_range("bytes=-40", 10).value() == ByteRange{0, 10});
  CHECK(parse_range("bytes=9-9", 10).value() == ByteRange{9, 1});
  for (std::string const end : {"18446744073709551615", "18446744073709551616", "99999999999999999999999"}) {
    CHECK(parse_range("bytes=0-" + end, 10).value() == ByteRange{0, 10});
    CHECK(parse_range("bytes=-" + end, 10).value() == ByteRange{0, 10});
    CHECK(parse_range("bytes=" + end + "-", 10).error().code == ProblemCode::range_not_satisfiable);
  }
  CHECK(parse_range("Bytes = 0-0 ", 1).value() == ByteRange{0, 1});
  CHECK(parse_range("bytes=0-0", UINT64_MAX).value() == ByteRange{0, 1});
  CHECK(parse_range("bytes=-1", UINT64_MAX).value() == ByteRange{UINT64_MAX - 1, 1});
  CHECK(content_range({2, 4}, 10) == "bytes 2-5/10");
  CHECK(content_range_of_none(10) == "bytes */10");
}

TEST_CASE("a range without a byte in it cannot be satisfied") {
  for (auto const* text : {"bytes=10-", "bytes=10-12", "bytes=-0", "bytes=18446744073709551615-"}) {
    INFO(std::string(text));
    CHECK(parse_range(text, 10).error().code == ProblemCode::range_not_satisfiable);
  }
  CHECK(parse_range("bytes=0-", 0).error().code == ProblemCode::range_not_satisfiable);
  CHECK(parse_range("bytes=-1", 0).error().code == ProblemCode::range_not_satisfiable);
}

TEST_CASE("several ranges are not served") {
  for (auto const* text : {"bytes=0-1,3-4", "bytes=0-1, 0-1", "bytes=-1,20-30"}) {
    INFO(std::string(text));
    CHECK(parse_range(text, 10).error().code == ProblemCode::range_not_satisfiable);
  }
}

TEST_CASE("text other than one range of bytes is a bad request") {
  for (auto const* text : {"", "bytes", "bytes=", "bytes=-", "bytes=5", "bytes=5-4", "bytes=a-b", "bytes=+1-2",
                           "bytes=-1-2", "bytes=1--2", "bytes=0x1-2", "elements=0-1", "bytes=1 -2"}) {
    INFO(std::string(text));
    CHECK(parse_range(text, 10).error().code == ProblemCode::bad_request);
  }
}

TEST_CASE("a range in another unit differs from a malformed one") {
  for (auto const* text : {"elements=0-1", "rows=a", "Items = 0-0", "x="}) CHECK(is_in_other_unit(text));
  for (auto const* text : {"", "bytes", "bytes=0-1", "BYTES =5", "=0-1", "a b=0-1", "elements 0-1"})
    CHECK_FALSE(is_in_other_unit(text));
}

TEST_CASE("a Content-Length is digits and nothing else") {
  CHECK(parse_content_length("0") == 0);
  CHECK(parse_content_length("9223372036854775807") == INT64_MAX);
  for (auto const* text : {"", "-1", "+1", " 1", "1 ", "1,1", "0x10", "1e3", "1.0", "9223372036854775808",
                           "18446744073709551616", "99999999999999999999999"})
    CHECK_MESSAGE(parse_content_length(text) == std::nullopt, text);
}

TEST_CASE("the length of a request is unmistakable or refused") {
  CHECK(request({}).value() == Framing{});
  CHECK(request({{"Content-Length", "5"}}).value() == Framing{Framing::Kind::length, 5});
  CHECK(request({{"Content-Length", "0"}}).value() == Framing{});
  CHECK(request({{"transfer-encoding", "Chunked"}}).value() == Framing{Framing::Kind::chunked, 0});

  CHECK(refused(request({{"Content-Length", "5"}, {"Transfer-Encoding", "chunked"}})));
  CHECK(refused(request({{"Transfer-Encoding", "chunked"}, {"Content-Length", "5"}})));
  CHECK(refused(request({{"Content-Length", "5"}, {"Content-Length", "5"}})));
  CHECK(refused(request({{"Content-Length", "5, 5"}})));
  CHECK(refused(request({{"Content-Length", "-5"}})));
  CHECK(refused(request({{"Transfer-Encoding", "gzip, chunked"}})));
  CHECK(refused(request({{"Transfer-Encoding", "chunked, gzip"}})));
  CHECK(refused(request({{"Transfer-Encoding", "identity"}})));
  CHECK(refused(request({{"Transfer-Encoding", ""}})));
  CHECK(refused(request({{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}})));
  CHECK(refused(request({{"Host", "another"}})));
  CHECK(refused(request_framing(Version::http_1_1, {})));
  CHECK(request_framing(Version::http_1_0, {}).value() == Framing{});
  CHECK(refused(request_framing(Version::http_1_0, fields({{"Transfer-Encoding", "chunked"}}))));
}

TEST_CASE("an answer without a length ends with the connection, unless it has no body") {
  CHECK(answer_framing(Method::get, 200, {}).value().kind == Framing::Kind::until_close);
  CHECK(answer_framing(Method::get, 204, {}).value() == Framing{});
  CHECK(answer_framing(Method::get, 304, fields({{"Content-Length", "5"}})).value() == Framing{});
  CHECK(answer_framing(Method::head, 200, fields({{"Content-Length", "5"}})).value() == Framing{});
  CHECK(answer_framing(Method::get, 200, fields({{"Content-Length", "5"}})).value() ==
        Framing{Framing::Kind::length, 5});
  CHECK(answer_framing(Method::get, 200, fields({{"Transfer-Encoding", "chunked"}})).value().kind ==
        Framing::Kind::chunked);
  CHECK(refused(answer_framing(Method::get, 200, fields({{"Transfer-Encoding", "chunked"}, {"Content-Length", "1"}}))));
}

TEST_CASE("chunks decode the same however they are cut") {
  constexpr std::string_view text =
      "5\r\nhello\r\nA;name=value\r\n, all of y\r\n00002 \t\r\nou\r\n0\r\nTrailer: x\r\n\r\nGET /next";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    auto const result = decoded(text, step);
    CHECK(result.state == ChunkDecoder::State::done);
    CHECK(result.data == "hello, all of you");
    CHECK(result.left_bytes == 9);
  }
  CHECK(decoded("0\r\n\r\n").state == ChunkDecoder::State::done);
}

TEST_CASE("truncated chunks are not done") {
  constexpr std::string_view text = "3;x\r\nabc\r\n0\r\nT: x\r\n\r\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    auto const state = decoded(text.substr(0, length)).state;
    CHECK(state != ChunkDecoder::State::done);
    CHECK(state != ChunkDecoder::State::malformed);
  }
}

TEST_CASE("malformed chunks are refused") {
  for (auto const* text : {"\r\n", "g\r\n", "-1\r\n", "+1\r\n", " 1\r\n", "0x1\r\n", ";x\r\n", "1\nabc", "1\r\nab\r\n",
                           "1\r\na\rb", "1\r\na\n0\r\n\r\n", "1;a\nb\r\n", "1\rx", "0\r\nT: x\n\r\n", "0\r\n\rx",
                           "0\r\nT\rx", "fffffffffffffffff\r\n", "10000000000000000\r\n", "1,\r\n"}) {
    INFO(std::string(text));
    CHECK(decoded(text).state == ChunkDecoder::State::malformed);
  }
}

TEST_CASE("the number of small chunks and the bytes around them are limited") {
  constexpr auto most = ChunkDecoder::small_chunks_max;
  std::string const last = "0\r\n\r\n";
  CHECK(decoded(chunks(most, "x") + last, 4096).data.size() == most);
  CHECK(decoded(chunks(most + 1, "x") + last, 4096).state == ChunkDecoder::State::malformed);
  // Many chunks are well if they carry something: a large upload is cut into pieces of a few KiB.
  std::string const enough(ChunkDecoder::average_bytes_min, 'x');
  CHECK(decoded(chunks(2 * most, enough) + last, 4096).data.size() == 2 * most * enough.size());
  CHECK(decoded(chunks(most + 1, enough.substr(1)) + last, 4096).state == ChunkDecoder::State::malformed);
  // A large chunk at the beginning does not pay for small ones without end.
  auto const mixed = chunks(1, std::string(most * enough.size(), 'y')) + chunks(2 * most, "x");
  CHECK(decoded(mixed + last, 4096).state == ChunkDecoder::State::malformed);

  auto const half = std::string(ChunkDecoder::extension_bytes_max / 2, 'e');
  CHECK(decoded("1;" + half + "\r\nx\r\n0\r\n\r\n", 64).state == ChunkDecoder::State::done);
  CHECK(decoded("1;" + half + "\r\nx\r\n1;" + half + "e\r\nx\r\n0\r\n\r\n", 64).state ==
        ChunkDecoder::State::malformed);
  CHECK(decoded("0\r\n" + std::string(ChunkDecoder::trailer_bytes_max + 1, 't'), 64).state ==
        ChunkDecoder::State::malformed);
  std::string zeros(64, '0');
  zeros.append("1\r\nx\r\n0\r\n\r\n");
  CHECK(decoded(zeros).state == ChunkDecoder::State::malformed);
}

TEST_CASE("a URL is host, port and path") {
  auto const url = parse_url("http://example.org:7070/v1/groups?limit=1#top").value();
  CHECK(url.host == "example.org");
  CHECK(url.port == 7070);
  CHECK(url.path == "/v1/groups?limit=1");
  CHECK(url.scheme == "http");
  CHECK(parse_url("https://host")->port == 443);
  CHECK(parse_url("HTTPS://host:8443/")->scheme == "https");
  CHECK(parse_url("http://host")->port == 80);
  CHECK(parse_url("http://host")->path == "");
  CHECK(parse_url("http://host?x")->path == "/?x");
  CHECK(parse_url("HTTP://[::1]:80/")->host == "::1");
}

TEST_CASE("a malformed URL is refused with its text") {
  for (auto const* text :
       {"", "host:80", "ftp://host/", "http://", "https://", "http:///x", "http://:80", "http://host:", "http://host:0",
        "http://host:65536", "http://host:8a", "http://host:-1", "http://u@host", "http://[::1", "http://[::1]x",
        "http://host/a b", "http://host/\r\nX: y"}) {
    INFO(std::string(text));
    auto const url = parse_url(text);
    REQUIRE(url.has_error());
    CHECK(url.error().code == HttpErrc::bad_url);
    CHECK(url.error().detail.find(text) != std::string::npos);
  }
}

TEST_CASE("lists of tokens are searched without case") {
  CHECK(list_contains("keep-alive, Upgrade", "upgrade"));
  CHECK(list_contains("close", "CLOSE"));
  CHECK(!list_contains("closed, disclose", "close"));
  CHECK(!list_contains("", "close"));
}
