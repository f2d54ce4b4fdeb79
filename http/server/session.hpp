// One connection of the server: reads requests, calls handlers and writes responses, in order.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/message/http_date.hpp"
#include "http/server/repeated_request.hpp"
#include "http/server/server.hpp"
#include "http/server/session_reception.hpp"
#include "http/wire/body_reader.hpp"
#include "http/wire/wire.hpp"

namespace chorus::http {

// State that all sessions of a server share; outlives them.
struct SessionContext {
  Router const& router;
  ServerLimits const& limits;
  Observer const& observer;
  Door door;
  std::size_t& in_flight;  // requests that were read but not answered
  DateClock& date;
};

// Counts a request while it is read but not answered.
class InFlight {
 public:
  explicit InFlight(std::size_t& count) : count_(count) { ++count_; }
  ~InFlight() { --count_; }
  InFlight(InFlight const&) = delete;
  InFlight& operator=(InFlight const&) = delete;

 private:
  std::size_t& count_;
};

// Immovable; its owner spawns serve() once, and destroys the session after serve() has ended. Runs on the server's
// thread.
class Session {
 public:
  // `is_spare`: the server has too many connections. The session answers one request within a short time: normally if
  // its route is open to everybody, such as health routes; otherwise with 503.
  Session(boost::asio::ip::tcp::socket socket, SessionContext const& context, bool is_spare = false);
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  // Runs until the connection ends or an upgrade takes it over. Cancellation of serve() cancels the running handler.
  boost::asio::awaitable<void> serve();

  void expire_if_late(TimePoint now) { wire_.expire_if_late(now); }
  // True if serve() only waits for what a client has asked for that has closed its connection, or one half of it.
  [[nodiscard]] bool is_deserted() const { return waits_for_client_ && wire_.peer() != Wire::Peer::stays; }
  [[nodiscard]] std::string const& remote() const { return remote_; }

 private:
  enum class Next : std::uint8_t { request, linger, close, handed_over };

  struct Incoming {
    Request request;
    Framing framing;
    bool keep_alive = false;
    bool old_version = false;  // HTTP/1.0
    bool expects_continue = false;
    std::optional<std::uint32_t> body_crc32c;  // sent by the client, which then gets the CRC32C of the answer as well
  };

  boost::asio::awaitable<Next> secure();
  boost::asio::awaitable<Next> exchange();
  boost::asio::awaitable<Checked<std::optional<Incoming>>> receive_header();
  boost::asio::awaitable<Next> answer_again();
  boost::asio::awaitable<bool> send_again(SharedBytes payload);
  boost::asio::awaitable<Response> respond(Incoming& incoming, Body& body, std::string_view& route);
  boost::asio::awaitable<Response> handle(Incoming& incoming, Body& body, Router::Match match);
  boost::asio::awaitable<bool> send(Incoming const& incoming, Response response, bool keep_alive);
  boost::asio::awaitable<bool> send_stream(bool old_version, Response response);
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
  TimePoint started_{};                                        // when the header of the current request was complete
  std::string head_;                                           // head of the current answer
  bool waits_for_client_ = false;  // the wait changes nothing, and nobody but the client needs its end
  RepeatedRequest repeated_;
  Receptions receptions_{wire_};
};

}  // namespace chorus::http
