// A whole session of the server, from bytes to bytes: heads, framing, bodies, pipelining. Whatever comes in, what goes
// out is a row of whole answers, nothing follows one that closes the connection, the session ends when its client
// does, and none of this depends on how the bytes were cut.
#include "http/server/session.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <vector>

#include "tests/fuzz/input.hpp"

namespace asio = boost::asio;
using namespace chorus::http;

namespace {

constexpr std::size_t body_limit_bytes = 512;

asio::awaitable<Response> echo(Request const&, Body& body) {
  auto content = co_await body.read_all(body_limit_bytes);
  if (!content) co_return content.error();
  co_return Response::text(200, std::move(*content));
}

asio::awaitable<Response> ignore(Request const&, Body&) { co_return Response::text(200, "ignored"); }

Router make_router() {
  Router router;
  router.add(Method::get, "/", Access::open, &ignore);
  router.add(Method::put, "/e", Access::open, &echo);
  router.add(Method::post, "/{name}", Access::open, &ignore);
  return router;
}

ServerLimits small_limits() {
  ServerLimits limits;
  limits.header_bytes = 512;
  limits.unread_body_bytes = 64;
  return limits;
}

struct Seen {
  Method method;
  unsigned status;
  std::string route;
  friend bool operator==(Seen const&, Seen const&) = default;
};

struct Talk {
  std::vector<Seen> seen;
  std::string answers;
};

// The client's end of a pair of sockets, of which the session has the other one.
class Peer {
 public:
  Peer() { CHORUS_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_) == 0, "a pair"); }
  ~Peer() { ::close(ends_[0]); }
  Peer(Peer const&) = delete;
  Peer& operator=(Peer const&) = delete;

  [[nodiscard]] int other_end() const { return ends_[1]; }
  std::size_t send(std::string_view bytes) {  // 0: not now, or never again
    auto const sent = ::send(ends_[0], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    closed_ = sent < 0 && errno != EAGAIN;
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  [[nodiscard]] bool closed() const { return closed_; }
  void receive(std::string& into) {
    std::array<char, 4096> bytes;
    while (true) {
      auto const got = ::recv(ends_[0], bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      into.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  void end_of_sending() { ::shutdown(ends_[0], SHUT_WR); }

 private:
  int ends_[2]{};
  bool closed_ = false;
};

Talk talk(std::string_view first, std::string_view second) {
  static Router const router = make_router();
  static ServerLimits const limits = small_limits();
  Talk result;
  Observer const observer = [&](Exchange const& exchange) {
    result.seen.push_back({exchange.method, exchange.status, std::string(exchange.route)});
  };
  std::size_t in_flight = 0;
  DateClock date;
  SessionContext const context{router, limits, observer, {}, in_flight, date};
  asio::io_context io(1);
  Peer peer;
  Session session(asio::ip::tcp::socket(io, asio::ip::tcp::v4(), peer.other_end()), context);
  bool over = false;
  asio::co_spawn(io, session.serve(), [&](std::exception_ptr const& thrown) {
    CHORUS_ASSERT(!thrown, "a session throws nothing");
    over = true;
  });
  auto const step = [&] {
    io.restart();
    io.poll();
    peer.receive(result.answers);
  };
  for (auto part : {first, second}) {
    while (!part.empty() && !peer.closed()) {
      part.remove_prefix(peer.send(part));
      step();
    }
    step();
  }
  peer.end_of_sending();
  constexpr int steps_max = 1000;
  for (int i = 0; i < steps_max && !over; ++i) step();
  CHORUS_ASSERT(over, "the session ends when its client does");
  peer.receive(result.answers);
  return result;
}

// Without a head that was refused at the end: how much of it was looked at before the client had gone, and so what is
// wrong with it, depends on how it came.
std::vector<Seen> understood(std::vector<Seen> seen) {
  if (!seen.empty() && seen.back().method == Method::other && seen.back().route.empty() &&
      seen.back().status / 100 == 4)
    seen.pop_back();
  return seen;
}

std::string without_continue(std::string text) {
  constexpr std::string_view interim = "HTTP/1.1 100 Continue\r\n\r\n";
  for (auto at = text.find(interim); at == 0; at = text.find(interim)) text.erase(at, interim.size());
  return text;
}

// Takes one answer off the front.
void take_answer(std::string& answers, Seen const& seen) {
  answers = without_continue(std::move(answers));
  auto const status = "HTTP/1.1 " + std::to_string(seen.status) + ' ';
  CHORUS_ASSERT(answers.starts_with(status), "the answers have the order and the status of the requests");
  auto const head_bytes = answers.find("\r\n\r\n");
  CHORUS_ASSERT(head_bytes != std::string::npos, "an answer has a whole head");
  auto const head = answers.substr(0, head_bytes + 2);
  constexpr std::string_view field = "\r\nContent-Length: ";
  auto const at = head.find(field);
  CHORUS_ASSERT(at != std::string::npos && head.find(field, at + 1) == std::string::npos, "it has one length");
  std::size_t length = 0;
  std::from_chars(head.data() + at + field.size(), head.data() + head.size(), length);
  answers.erase(0, head_bytes + 4);
  if (seen.method != Method::head) {
    CHORUS_ASSERT(answers.size() >= length, "an answer has a whole body");
    answers.erase(0, length);
  }
  auto const closes = head.find("\r\nConnection: close\r\n") != std::string::npos;
  CHORUS_ASSERT(!closes || answers.empty(), "nothing follows the last answer");
  CHORUS_ASSERT(seen.status != 500, "no input is an internal error");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  chorus::fuzz::Input input(data, size);
  auto const cut = input.number<std::uint16_t>();
  auto const text = input.text().substr(0, 4096);
  auto const whole = talk(text, {});
  auto answers = whole.answers;
  for (auto const& seen : whole.seen) take_answer(answers, seen);
  CHORUS_ASSERT(without_continue(answers).empty(), "no answer without a request");
  if (text.empty()) return 0;
  auto const at = cut % text.size();
  auto const parts = talk(text.substr(0, at), text.substr(at));
  CHORUS_ASSERT(understood(parts.seen) == understood(whole.seen), "how the bytes are cut does not matter");
  return 0;
}
