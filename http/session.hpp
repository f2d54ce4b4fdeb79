// One connection of the server: requests in, responses out, in order, until either side has had enough.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/body_reader.hpp"
#include "http/server.hpp"
#include "http/wire.hpp"

namespace chorus::http {

// What all sessions of a server share; outlives them.
struct SessionContext {
  Router const& router;
  ServerLimits const& limits;
  Observer const& observer;
  Door door;
  std::size_t& in_flight;  // requests that were read and are not answered
};

// A request that was read, until it has been answered.
class InFlight {
 public:
  explicit InFlight(std::size_t& count) : count_(count) { ++count_; }
  ~InFlight() { --count_; }
  InFlight(InFlight const&) = delete;
  InFlight& operator=(InFlight const&) = delete;

 private:
  std::size_t& count_;
};

// Immovable; its owner spawns serve() once, and destroys it after that has ended. On the server's thread.
class Session {
 public:
  // `is_spare`: there are too many connections already. One request is answered, soon, and only if it is for a route
  // that is open to everybody, such as those of health; with 503 otherwise.
  Session(boost::asio::ip::tcp::socket socket, SessionContext const& context, bool is_spare = false);
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  // Until the connection ends or is handed over by an upgrade. Cancelling it cancels the handler that runs.
  boost::asio::awaitable<void> serve();

  void expire_if_late(TimePoint now) { wire_.expire_if_late(now); }
  [[nodiscard]] std::string const& remote() const { return remote_; }

 private:
  enum class Next : std::uint8_t { request, linger, close, handed_over };

  struct Incoming {
    Request request;
    Framing framing;
    bool keep_alive = false;
    bool old_version = false;  // HTTP/1.0
    bool expects_continue = false;
    std::optional<std::uint32_t> body_crc32c;  // as the client says, which then hears that of the answer
  };

  // A request that may come again as it was, and its answer.
  struct Repeated {
    std::string asked;  // its bytes
    Incoming incoming;
    Router::Match match;
    unsigned status = 200;
    std::string head;  // of the answer
    Again again;
  };

  boost::asio::awaitable<Next> secure();
  boost::asio::awaitable<Next> exchange();
  boost::asio::awaitable<Checked<std::optional<Incoming>>> receive_header();
  void note_repetition(Incoming incoming, unsigned status, Again again);
  // Until something else comes than what was answered last, or another answer is due.
  boost::asio::awaitable<Next> answer_again();
  boost::asio::awaitable<bool> send_again(SharedBytes payload);
  boost::asio::awaitable<Response> respond(Incoming& incoming, Body& body, std::string_view& route);
  boost::asio::awaitable<Response> handle(Incoming& incoming, Body& body, Router::Match match);
  boost::asio::awaitable<bool> send(Incoming const& incoming, Response response, bool keep_alive);
  boost::asio::awaitable<bool> send_stream(bool old_version, Stream stream, std::optional<std::uint64_t> length);
  boost::asio::awaitable<Next> hand_over(Incoming const& incoming, Response response);
  void drop_unsent();
  boost::asio::awaitable<void> linger();
  void observe(Method method, std::string_view route, unsigned status, TimePoint started) const;
  [[nodiscard]] Patience body_patience() const;

  SessionContext const& context_;
  bool const is_spare_;
  Wire wire_;
  std::string remote_;
  std::optional<std::vector<std::string>> certificate_names_;  // the client's
  TimePoint started_{};                                        // of the current request: its header was complete
  std::string asked_;         // the bytes of the current request's header, if it may come again
  std::string asked_before_;  // of one before it
  std::string head_;          // of the current answer
  std::unique_ptr<Repeated> repeated_;
};

}  // namespace chorus::http
