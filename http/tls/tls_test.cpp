// https between this server and this client, and the messages of both about wrong certificates.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <optional>

#include "base/runtime/environment.hpp"
#include "http/auth/credentials.hpp"
#include "http/auth/guard.hpp"
#include "http/client/client.hpp"
#include "http/testing/live_server.hpp"
#include "http/tls/context.hpp"
#include "http/wire/errc.hpp"
#include "tests/support/certificates.hpp"

using namespace chorus;
using namespace chorus::http;
using chorus::http::testing::LiveServer;
using chorus::testing::Authority;
using chorus::testing::Identity;
namespace asio = boost::asio;
using std::chrono::hours;

namespace {

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

TlsFiles files(Identity const& own, Authority const& believed, bool requires_certificate = false) {
  return {own.certificate, own.key, believed.path(), requires_certificate};
}

// A server with its own certificate.
struct SecureServer {
  SecureServer(Identity const& own, Authority const& believed, bool requires_certificate = false)
      : context(TlsContext::Side::server, files(own, believed, requires_certificate)) {
    ignore_signals_of_writes();  // a client that refuses the certificate closes the connection
    auto const opened = context.open();
    INFO((opened ? "" : opened.error().detail));
    REQUIRE(opened.has_value());
    server.emplace(ServerLimits{}, Door{nullptr, &context, false});
  }
  [[nodiscard]] std::string url(std::string const& path) const { return server->url(path); }

  TlsContext context;
  std::optional<LiveServer> server;
};

asio::awaitable<void> keep(asio::awaitable<Result<Answer>> task, std::optional<Result<Answer>>& result) {
  auto answer = co_await std::move(task);
  result.emplace(std::move(answer));
}

struct Customer {
  explicit Customer(TlsFiles tls) : credentials("", std::move(tls)) { REQUIRE(credentials.open().has_value()); }

  Result<Answer> send(Call call) {
    std::optional<Result<Answer>> result;
    asio::co_spawn(io, keep(client.send(std::move(call), soon()), result), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
    io.restart();
    while (!result) io.run_one();
    return std::move(*result);
  }
  Result<Answer> get(std::string url) {
    Call call;
    call.url = std::move(url);
    return send(std::move(call));
  }
  // Requires that the call fails, and returns the reason.
  std::string why(std::string url) {
    auto const answer = get(std::move(url));
    REQUIRE(answer.has_error());
    return answer.error().detail;
  }

  asio::io_context io{1};
  Credentials credentials;
  Client client{io.get_executor(), &credentials};
};

// A client that sends requests without pause, and drops the answers, on a thread of its own.
class Flood {
 public:
  Flood(std::uint16_t port, TlsFiles files) : context_(TlsContext::Side::client, std::move(files)), socket_(io_) {
    socket_.connect({asio::ip::address_v4::loopback(), port});
    socket_.native_non_blocking(true);
    thread_ = std::thread([this] { run(); });
  }
  ~Flood() {
    is_over_ = true;
    thread_.join();
  }
  Flood(Flood const&) = delete;
  Flood& operator=(Flood const&) = delete;

 private:
  void run() {
    auto const stream = TlsStream::connect(context_.current(), socket_.native_handle(), "127.0.0.1");
    for (auto moved = stream->handshake(); moved.wait != TlsStream::Wait::nothing; moved = stream->handshake()) wait();
    std::string requests;
    for (int i = 0; i < 100; ++i) requests += "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
    auto const all = std::as_bytes(std::span(requests));
    auto rest = all;
    std::vector<std::byte> answers(1 << 16);
    while (!is_over_) {
      auto const sent = stream->write(std::array{rest});
      rest = rest.subspan(sent.bytes);
      if (rest.empty()) rest = all;
      auto const received = stream->read(answers);
      if (sent.error || received.error) break;
      if (sent.wait != TlsStream::Wait::nothing && received.wait != TlsStream::Wait::nothing) wait();
    }
  }
  void wait() {
    pollfd ready{socket_.native_handle(), POLLIN, 0};
    ::poll(&ready, 1, 10);
  }

  asio::io_context io_;
  TlsContext context_;
  asio::ip::tcp::socket socket_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

bool has(std::string const& text, std::string const& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("requests, large bodies and streams use TLS") {
  Authority authority;
  SecureServer server(authority.issue("server", {"127.0.0.1"}), authority);
  Customer customer({"", "", authority.path()});
  CHECK(customer.get(server.url("/hello"))->body == "hello\n");
  CHECK(customer.get(server.url("/hello"))->body == "hello\n");
  CHECK(server.server->connections_used() == 1);

  auto const bytes = http::testing::pattern(5'000'000);
  Call store;
  store.method = Method::put;
  store.url = server.url("/store");
  store.payload = bytes;
  CHECK(customer.send(std::move(store))->status == 204);
  CHECK(server.server->take_stored() == bytes);

  std::vector<std::byte> room(3'000'000);
  Call payload;
  payload.url = server.url("/payload/3000000");
  payload.destination = room;
  CHECK(customer.send(std::move(payload))->received_bytes == room.size());
  CHECK(room == http::testing::pattern(room.size()));
  CHECK(customer.get(server.url("/stream/3"))->body == "piece 3\npiece 2\npiece 1\n");
}

TEST_CASE("a client that sends requests without pause over TLS does not keep others from being served") {
  Authority authority;
  SecureServer server(authority.issue("server", {"127.0.0.1"}), authority);
  Flood const flood(server.server->port(), {"", "", authority.path()});
  REQUIRE(server.server->wait_until_seen(1000));
  auto const begun = std::chrono::steady_clock::now();
  auto const answer = Customer({"", "", authority.path()}).get(server.url("/hello"));
  CHECK_MESSAGE(answer.has_value(), answer.error().detail);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}

TEST_CASE("a payload that is refused over TLS is not sent to its end, and the refusal arrives") {
  Authority authority;
  SecureServer server(authority.issue("server", {"127.0.0.1"}), authority);
  Customer customer({"", "", authority.path()});
  std::vector<std::byte> const bytes(256 << 20);
  Call refused;
  refused.method = Method::put;
  refused.url = server.url("/refuse");
  refused.payload = bytes;
  std::uint64_t sent = 0;
  refused.on_sent = [&](std::uint64_t sent_bytes) { sent = sent_bytes; };
  auto const answer = customer.send(std::move(refused));
  REQUIRE_MESSAGE(answer.has_value(), answer.error().detail);
  CHECK(answer->problem().code == ProblemCode::busy);
  CHECK(sent < bytes.size());
}

TEST_CASE("a certificate for another name is refused, and the message has both") {
  Authority authority;
  SecureServer server(authority.issue("w1", {"w1.example", "10.0.0.1"}), authority);
  auto const why = Customer({"", "", authority.path()}).why(server.url("/hello"));
  CHECK(has(why, "is for w1.example, 10.0.0.1, and not for 127.0.0.1"));
  CHECK(has(why, server.url("/hello")));
}

TEST_CASE("a certificate of an unknown authority is refused, and the message says what would help") {
  Authority authority, stranger("another authority"), namesake;
  SecureServer server(authority.issue("server", {"127.0.0.1"}), authority);
  CHECK(has(Customer({"", "", namesake.path()}).why(server.url("/hello")), "its authority has to be in --tls-ca"));
  CHECK(has(Customer({"", "", stranger.path()}).why(server.url("/hello")), "its authority has to be in --tls-ca"));
}

TEST_CASE("an expired certificate is refused by the client, and by its own service when it starts") {
  Authority authority;
  auto const good = authority.issue("server", {"127.0.0.1"});
  SecureServer server(good, authority);
  Customer customer({"", "", authority.path()});
  CHECK(customer.get(server.url("/hello"))->ok());
  authority.issue("server", {"127.0.0.1"}, -hours(1));
  TlsContext late(TlsContext::Side::server, files(good, authority));
  auto const opened = late.open();
  REQUIRE(opened.has_error());
  CHECK(has(opened.error().detail, "has expired at"));
}

TEST_CASE("a renewed certificate is used by the next connection") {
  Authority authority;
  auto const own = authority.issue("server", {"127.0.0.1"});
  SecureServer server(own, authority);
  auto const until = server.context.certificate()->ends;
  CHECK(Customer({"", "", authority.path()}).get(server.url("/hello"))->ok());
  authority.issue("server", {"127.0.0.1"}, hours(5));
  auto const deadline = soon();
  while (server.context.certificate()->ends == until && std::chrono::steady_clock::now() < deadline)
    CHECK(Customer({"", "", authority.path()}).get(server.url("/hello"))->ok());
  CHECK(server.context.certificate()->ends > until);
  // The next certificate has expired: the client must refuse it.
  authority.issue("server", {"127.0.0.1"}, -hours(1));
  std::string why;
  while (why.empty() && std::chrono::steady_clock::now() < deadline) {
    auto const answer = Customer({"", "", authority.path()}).get(server.url("/hello"));
    if (!answer) why = answer.error().detail;
  }
  CHECK(has(why, "has expired at"));
  CHECK(has(why, "renew it there"));
}

TEST_CASE("where client certificates are required, no client gets in without a valid one") {
  Authority authority, stranger("another authority");
  SecureServer server(authority.issue("server", {"127.0.0.1"}), authority, true);
  CHECK(Customer(files(authority.issue("client", {"w0"}), authority)).get(server.url("/hello"))->ok());
  CHECK(has(Customer({"", "", authority.path()}).why(server.url("/hello")), "a client certificate is required"));
  auto const forged = stranger.issue("client", {"w0"});
  CHECK(has(Customer(files(forged, authority)).why(server.url("/hello")), "does not know who signed"));
  auto const old = authority.issue("old", {"w0"}, -hours(1));
  CHECK(has(Customer(files(old, authority)).why(server.url("/hello")), "it has expired; renew it"));
}

TEST_CASE("plain HTTP on a port with TLS, and TLS on a plain port, are told apart") {
  Authority authority;
  SecureServer secure(authority.issue("server", {"127.0.0.1"}), authority);
  LiveServer plain;
  Customer customer({"", "", authority.path()});
  auto const answer = customer.get("http://127.0.0.1:" + std::to_string(secure.server->port()) + "/hello");
  REQUIRE(answer.has_value());
  CHECK(answer->status == 400);
  CHECK(has(answer->body, "this port speaks TLS"));
  CHECK(has(customer.why("https://127.0.0.1:" + std::to_string(plain.port()) + "/hello"), "does not speak TLS"));
}

TEST_CASE("keys and certificates that do not belong together are refused with their names") {
  Authority authority;
  auto const a = authority.issue("a", {"a"}), b = authority.issue("b", {"b"});
  auto const refused = [](TlsFiles const& wrong, std::string const& what) {
    TlsContext context(TlsContext::Side::server, wrong);
    auto const opened = context.open();
    REQUIRE(opened.has_error());
    CHECK(has(opened.error().detail, what));
  };
  refused({a.certificate, b.key, ""}, b.key);
  refused({"/nowhere.pem", a.key, ""}, "/nowhere.pem");
  refused({a.certificate, "/nowhere.key", ""}, "/nowhere.key");
  refused({a.certificate, a.key, "/nowhere.ca"}, "/nowhere.ca");
  refused({a.key, a.key, ""}, a.key);
}

TEST_CASE("a certificate covers its alternative names, addresses and labels below a star") {
  CHECK(covers({"w0", "*.rack.example", "10.0.0.1", "::1"}, "W0"));
  CHECK(covers({"*.rack.example"}, "a.rack.example"));
  CHECK(covers({"10.0.0.1", "::1"}, "::1"));
  CHECK(covers({"0:0:0:0:0:0:0:1"}, "::1"));
  CHECK_FALSE(covers({"*.rack.example"}, "a.b.rack.example"));
  CHECK_FALSE(covers({"*.rack.example"}, "rack.example"));
  CHECK_FALSE(covers({"*.0.0.1"}, "10.0.0.1"));
  CHECK_FALSE(covers({}, "w0"));
}
