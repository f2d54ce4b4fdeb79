// Requests that two parties could parse differently, and clients that are slow on purpose, against a live coordinator
// and a live worker: every row gets the listed answer, the connection ends where it must, and the service neither stops
// answering nor grows.
#include <doctest/doctest.h>

#include <memory>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/process_size.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

std::string const host = "Host: localhost\r\n";
// The service would answer this request if it misread where the request before it ends.
std::string const smuggled = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

enum class After { closes, goes_on };

struct Row {
  std::string what;
  std::string bytes;
  int status;
  After after;
};

Row refused(std::string what, std::string bytes) { return {std::move(what), std::move(bytes), 400, After::closes}; }

// Makes a request with these fields and a chunked body.
Row chunked(std::string what, std::string const& fields, std::string const& version = "HTTP/1.1") {
  return refused(std::move(what), "PUT /v1/groups/g " + version + "\r\n" + host + fields + "\r\n2\r\n{}\r\n0\r\n\r\n");
}

Row sized(std::string what, std::string const& lengths) {
  return refused(std::move(what), "PUT /v1/groups/g HTTP/1.1\r\n" + host + lengths + "\r\n{}");
}

// Makes a request with these chunks.
Row chunks(std::string what, std::string const& body) {
  return refused(std::move(what), "PUT /v1/groups/g HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" + body);
}

Row head(std::string what, std::string const& line, std::string const& fields) {
  return refused(std::move(what), line + "\r\n" + fields + "\r\n");
}

std::vector<Row> lengths() {
  return {
      sized("twice the same length", "Content-Length: 2\r\nContent-Length: 2\r\n"),
      sized("two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n"),
      sized("a list of lengths", "Content-Length: 2, 2\r\n"),
      sized("a negative length", "Content-Length: -2\r\n"),
      sized("a length with a sign", "Content-Length: +2\r\n"),
      sized("a length in hexadecimal", "Content-Length: 0x2\r\n"),
      sized("a length with a fraction", "Content-Length: 2.0\r\n"),
      sized("an empty length", "Content-Length:\r\n"),
      sized("a length beyond 63 bits", "Content-Length: 9223372036854775808\r\n"),
      sized("a length beyond 64 bits", "Content-Length: 18446744073709551618\r\n"),
      sized("a length with a blank in it", "Content-Length: 1 2\r\n"),
      sized("a length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
      sized("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
      sized("a length of 0 and chunks", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
  };
}

std::vector<Row> encodings() {
  return {
      chunked("chunked, then identity", "Transfer-Encoding: chunked, identity\r\n"),
      chunked("identity, then chunked", "Transfer-Encoding: identity, chunked\r\n"),
      chunked("chunked twice in a list", "Transfer-Encoding: chunked, chunked\r\n"),
      chunked("gzip, then chunked", "Transfer-Encoding: gzip, chunked\r\n"),
      chunked("xchunked", "Transfer-Encoding: xchunked\r\n"),
      chunked("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n"),
      chunked("chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n"),
      chunked("chunked after a vertical tab",
              "Transfer-Encoding: \x0b"
              "chunked\r\n"),
      chunked("a comma before chunked", "Transfer-Encoding: ,chunked\r\n"),
      chunked("an empty encoding", "Transfer-Encoding:\r\n"),
      chunked("two fields that say chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      chunked("two fields, the second identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
      chunked("a field folded over two lines", "Transfer-Encoding:\r\n chunked, identity\r\n"),
      chunked("a blank before the colon", "Transfer-Encoding : chunked\r\n"),
      chunked("chunks in HTTP/1.0", "Transfer-Encoding: chunked\r\n", "HTTP/1.0"),
      chunked("chunks and a length in HTTP/1.0", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.0"),
      chunks("a size beyond 64 bits", "10000000000000002\r\n{}\r\n0\r\n\r\n"),
      chunks("a size of many zeros", std::string(64, '0') + "2\r\n{}\r\n0\r\n\r\n"),
      chunks("a size with a sign", "+2\r\n{}\r\n0\r\n\r\n"),
      chunks("a size with 0x", "0x2\r\n{}\r\n0\r\n\r\n"),
      chunks("no size", "\r\n{}\r\n0\r\n\r\n"),
      chunks("a size that ends with a bare line feed", "2\n{}\r\n0\r\n\r\n"),
      chunks("a bare line feed in an extension", "2;a\nb\r\n{}\r\n0\r\n\r\n"),
      chunks("an extension without end", "2;" + std::string(10000, 'e')),
      chunks("a chunk longer than its size", "2\r\n{}}\r\n0\r\n\r\n"),
      chunks("trailers without end", "0\r\n" + std::string(10000, 't')),
  };
}

std::vector<Row> heads() {
  auto const get = std::string("GET /livez HTTP/1.1");
  std::string const nul(1, '\0');
  return {
      head("no Host", get, ""),
      head("two Hosts", get, "Host: a\r\nHost: b\r\n"),
      head("twice the same Host", get, host + host),
      head("a target that is an authority", "GET test:80 HTTP/1.1", host),
      head("CONNECT", "CONNECT test:80 HTTP/1.1", host),
      head("a target that is a star", "OPTIONS * HTTP/1.1", host),
      head("an absolute target without a path", "GET http://test HTTP/1.1", host),
      head("a NUL in a name", get, host + "a" + nul + "b: c\r\n"),
      head("a NUL in a value", get, host + "a: b" + nul + "c\r\n"),
      head("a blank in a name", get, host + "a b: c\r\n"),
      head("a blank before the colon", get, host + "a : c\r\n"),
      head("a name that is empty", get, host + ": c\r\n"),
      head("a line without a colon", get, host + "abc\r\n"),
      head("a first field that is folded", get, " " + host),
      head("a bare carriage return in a value", get, host + "a: b\rc\r\n"),
      head("a bare line feed after the request line", "GET /livez HTTP/1.1\n" + host, ""),
      head("a tab in the request line", "GET\t/livez HTTP/1.1", host),
      head("two blanks in the request line", "GET  /livez HTTP/1.1", host),
      head("a control character in the target", "GET /livez\x01 HTTP/1.1", host),
      head("a line feed in the target, in percents", "GET /livez%0a HTTP/1.1", host),
      head("HTTP/0.9", "GET /livez", host),
      head("HTTP/1.2", "GET /livez HTTP/1.2", host),
      head("HTTP/2", "PRI * HTTP/2.0", ""),
      {"a target of 10,000 bytes", "GET /" + std::string(10000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 431,
       After::closes},
      {"a name of 10,000 bytes", get + "\r\n" + host + std::string(10000, 'a') + ": b\r\n\r\n", 431, After::closes},
      {"a value of 10,000 bytes", get + "\r\n" + host + "a: " + std::string(10000, 'b') + "\r\n\r\n", 431,
       After::closes},
      {"an absolute target", "GET http://localhost/livez HTTP/1.1\r\n" + host + "\r\n", 200, After::goes_on},
      {"blanks around a value", get + "\r\nHost: \t localhost \t\r\n\r\n", 200, After::goes_on},
      {"an unknown method", "BREW /livez HTTP/1.1\r\n" + host + "\r\n", 405, After::goes_on},
      {"a path that is not there", "GET /nothing HTTP/1.1\r\n" + host + "\r\n", 404, After::goes_on},
      {"a path of 5,000 bytes that is not there", "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n" + host + "\r\n",
       404, After::goes_on},
  };
}

void check_row(Service& service, Row const& row) {
  CAPTURE(service.id);
  CAPTURE(row.what);
  RawConnection connection(service.port());
  connection.send(row.bytes + smuggled);
  auto const answer = connection.read_answer(5s);
  INFO(answer.substr(0, 400));
  CHECK(status_of(answer) == row.status);
  if (row.status / 100 == 4) CHECK(answer.find("application/problem+json") != std::string::npos);
  if (row.after == After::goes_on) {
    CHECK(status_of(connection.read_answer(5s)) == 200);
    return;
  }
  CHECK(answer.find("Connection: close\r\n") != std::string::npos);
  CHECK(connection.read_to_end(5s) == "");
  CHECK(connection.closed_by_peer());
}

bool alive(Service const& service) { return service.get("/livez").status == 200; }

}  // namespace

TEST_CASE("every ambiguous request is refused, and the bytes after it are not taken for a request") {
  Cluster cluster(1);
  for (auto* service : {&cluster.coordinator, &cluster.worker(0)}) {
    for (auto const& table : {lengths(), encodings(), heads()})
      for (auto const& row : table) check_row(*service, row);
    CHECK(alive(*service));
  }
}

TEST_CASE("a service that gets malformed requests again and again grows neither in memory nor in descriptors") {
  Cluster cluster(1);
  for (auto* service : {&cluster.coordinator, &cluster.worker(0)}) {
    CAPTURE(service->id);
    auto const all_rows = [&] {
      for (auto const& table : {lengths(), encodings(), heads()})
        for (auto const& row : table) {
          RawConnection connection(service->port());
          connection.send(row.bytes);
        }
    };
    auto const opened = size_of(service->process).descriptors;
    for (int i = 0; i < 5; ++i) all_rows();
    CHECK(eventually([&] { return size_of(service->process).descriptors <= opened + 4; }, 20s));
    auto const before_kib = size_of(service->process).resident_kib;
    for (int i = 0; i < 20; ++i) all_rows();
    CHECK(eventually([&] { return size_of(service->process).descriptors <= opened + 4; }, 20s));
    CHECK((under_sanitizer() || size_of(service->process).resident_kib < before_kib + 8192));
    CHECK(alive(*service));
  }
}

TEST_CASE("a hundred clients that send and read slowly on purpose delay no other client, and are dropped") {
  Cluster cluster(1);
  REQUIRE(cluster.worker(0).put_tensor("large", "u8", "16777216", std::string(16777216, 'x')).status == 201);
  for (auto* service : {&cluster.coordinator, &cluster.worker(0)}) {
    CAPTURE(service->id);
    auto const opened = size_of(service->process).descriptors;
    auto const before_kib = size_of(service->process).resident_kib;
    auto const tensor = "GET /v1/tensors/large HTTP/1.1\r\n" + host + "\r\n";
    std::string pages;
    for (int i = 0; i < 1000; ++i) pages += "GET /metrics HTTP/1.1\r\n" + host + "\r\n";
    std::vector<std::unique_ptr<RawConnection>> slow;
    auto const connect = [&](std::string const& bytes) {
      slow.push_back(std::make_unique<RawConnection>(service->port()));
      slow.back()->send(bytes);
    };
    for (int i = 0; i < 25; ++i) {
      connect("GET /livez HTTP/1.1\r\nHo");
      connect("PUT /v1/groups/g HTTP/1.1\r\n" + host + "Content-Length: 100\r\n\r\n{");
      connect("PUT /v1/groups/g HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n6");
      // Does not read: one large answer of the worker, many of the coordinator.
      slow.push_back(std::make_unique<RawConnection>(service->port(), 4096));
      slow.back()->send(service == &cluster.coordinator ? pages : tensor);
    }
    auto const began = std::chrono::steady_clock::now();
    CHECK(alive(*service));
    CHECK(std::chrono::steady_clock::now() - began < 2s);
    // A byte now and then, so that no connection is ever silent.
    auto const trickle = [&] {
      for (std::size_t i = 0; i < slow.size(); i += 4) slow[i]->send("x");
    };
    CHECK(eventually(
        [&] {
          trickle();
          return size_of(service->process).descriptors <= opened + 4;
        },
        40s));
    CHECK((under_sanitizer() || size_of(service->process).resident_kib < before_kib + 32768));
    CHECK(alive(*service));
  }
}
