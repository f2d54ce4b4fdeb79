#include "http/server/session.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <charconv>

#include "base/ascii.hpp"
#include "base/runtime/socket_options.hpp"
#include "collectives/core/assert.hpp"
#include "http/auth/guard.hpp"
#include "http/message/compressed.hpp"
#include "http/message/target.hpp"
#include "http/message/trace_context.hpp"
#include "http/server/response_head.hpp"
#include "http/server/session_body.hpp"
#include "http/tls/context.hpp"
#include "http/wire/message_checksum.hpp"
#include "http/wire/receive_header.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

// Time limit for the request of a connection above the limit: health probes send their request at once.
constexpr std::chrono::milliseconds spare_patience{2000};

Method method_of(beast::http::verb verb) {
  switch (verb) {
    case beast::http::verb::get:
      return Method::get;
    case beast::http::verb::head:
      return Method::head;
    case beast::http::verb::put:
      return Method::put;
    case beast::http::verb::post:
      return Method::post;
    case beast::http::verb::delete_:
      return Method::delete_;
    case beast::http::verb::options:
      return Method::options;
    default:
      return Method::other;
  }
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

Response problem_response(Problem problem, std::string const& path) {
  if (problem.instance.empty()) problem.instance = path;
  return problem;
}

// Other requests may change something, and run on without their client, unless they say that they only_wait().
bool is_wait(Request const& request) {
  return (request.method == Method::get || request.method == Method::head) && request.query_value("wait");
}

std::string chunk_head(std::size_t bytes) {
  std::array<char, 2 * sizeof bytes> digits;
  auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes, 16).ptr;
  return std::string(digits.data(), end) + "\r\n";
}

}  // namespace

Session::Session(asio::ip::tcp::socket socket, SessionContext const& context, bool is_spare)
    : context_(context), is_spare_(is_spare), wire_(std::move(socket), context.limits.header_bytes) {
  boost::system::error_code error;
  auto const endpoint = wire_.socket().remote_endpoint(error);
  if (!error) remote_ = plain(endpoint.address()).to_string() + ":" + std::to_string(endpoint.port());
}

Patience Session::body_patience() const {
  return {TimePoint::max(), context_.limits.body_stall_timeout, context_.limits.body_bytes_per_second_min};
}

asio::awaitable<void> Session::serve() {
  try {
    auto next = Next::request;
    if (context_.door.tls != nullptr) next = co_await secure();
    while (next == Next::request) {
      if (repeated_.is_known()) next = co_await answer_again();
      if (next == Next::request) next = co_await exchange();
    }
    if (next == Next::linger) co_await linger();
    receptions_.end();
    if (next != Next::handed_over) wire_.close();
  } catch (boost::system::system_error const& error) {
    // The server cancelled the session.
    if (error.code() != asio::error::operation_aborted) spdlog::error("{}: session: {}", remote_, error.what());
    wire_.close();
  }
}

asio::awaitable<Session::Next> Session::secure() {
  wire_.set_patience({.until = std::chrono::steady_clock::now() + context_.limits.header_timeout});
  auto stream = TlsStream::accept(context_.door.tls->current(), wire_.socket().native_handle());
  auto const secured = co_await wire_.secure(std::move(stream));
  if (!secured.error) {
    if (auto certificate = wire_.tls()->peer_certificate()) certificate_names_ = std::move(certificate->names);
    co_return Next::request;
  }
  spdlog::info("{}: no TLS: {}", remote_, wire_.reason());
  if (!wire_.release_tls()->met_plain_http()) co_return Next::close;
  started_ = std::chrono::steady_clock::now();
  Problem const problem(ProblemCode::bad_request, "this port speaks TLS: the URL begins with https://");
  auto const sent = co_await send(Incoming(), problem, false);
  co_return sent ? Next::linger : Next::close;
}

asio::awaitable<Session::Next> Session::exchange() {
  auto received = co_await receive_header();
  if (!received) {
    started_ = std::chrono::steady_clock::now();
    observe(Method::other, "", kind(received.error().code).status, started_);
    co_return co_await send(Incoming(), std::move(received).error(), false) ? Next::linger : Next::close;
  }
  if (!*received) co_return Next::close;
  auto& incoming = **received;
  InFlight const counted(context_.in_flight);
  started_ = std::chrono::steady_clock::now();

  SessionBody body(wire_, receptions_, waits_for_client_, incoming.framing, incoming.expects_continue, body_patience(),
                   incoming.body_crc32c);
  std::string_view route;
  waits_for_client_ = is_wait(incoming.request);
  auto response = co_await respond(incoming, body, route);
  waits_for_client_ = false;
  if (response.status == 101 && !body.finished())
    response = problem_response({ProblemCode::bad_request, "a request to upgrade has no body"}, incoming.request.path);
  auto const status = response.status;
  auto const method = incoming.request.method;
  if (status == 101) {
    observe(method, route, status, started_);
    co_return co_await hand_over(incoming, std::move(response));
  }
  auto const unread_limit = context_.limits.unread_body_bytes;
  auto const keep_alive = incoming.keep_alive && !is_spare_ && body.can_be_skipped(unread_limit) &&
                          !(is_open_ended(response) && incoming.old_version);  // such a body ends with the connection
  auto const is_stream = is_open_ended(response);
  auto again = std::move(response.again);
  if (is_stream) observe(method, route, status, started_);  // the duration of a stream says nothing about the service
  body.answering();
  auto const sent = co_await send(incoming, std::move(response), keep_alive);
  if (!is_stream) observe(method, route, status, started_);
  if (!sent) receptions_.cut();
  if (!sent) co_return Next::close;
  // The head of the answer can be reused: it has no checksum of a payload.
  bool const is_fixed = !incoming.body_crc32c && incoming.framing.kind == Framing::Kind::none;
  if (again && keep_alive && is_fixed)
    repeated_.answered(std::move(incoming.request), context_.router, status, head_, std::move(again));
  if (!body.finished() && !(keep_alive && co_await body.skip(unread_limit))) co_return Next::linger;
  co_return keep_alive ? Next::request : Next::linger;
}

// Answers repetitions until another request comes or the answer changes. Authorization is checked each time.
asio::awaitable<Session::Next> Session::answer_again() {
  auto* const guard = context_.door.guard;
  for (;;) {
    if (wire_.buffered().empty()) {
      wire_.set_patience({.until = std::chrono::steady_clock::now() + context_.limits.idle_timeout});
      if (auto const more = co_await wire_.receive(); more.error) co_return Next::close;
    }
    if (!repeated_.comes_again(wire_.buffered())) break;
    auto payload = repeated_.payload();
    if (!payload || (guard != nullptr && guard->stop(repeated_.request(), repeated_.match()))) break;
    started_ = std::chrono::steady_clock::now();
    InFlight const counted(context_.in_flight);
    wire_.consume(repeated_.bytes());
    auto const sent = co_await send_again(std::move(*payload));
    observe(Method::get, repeated_.match().pattern, repeated_.status(), started_);
    if (!sent) co_return Next::close;
  }
  repeated_.forget();
  co_return Next::request;
}

asio::awaitable<bool> Session::send_again(SharedBytes payload) {
  auto head = repeated_.head(context_.date.now());
  auto body = payload.bytes;
  auto const sent = wire_.write_now(head, body);
  if (sent == head.size() + body.size()) co_return true;
  wire_.set_patience(body_patience());
  auto const of_head = std::min(sent, head.size());
  head.remove_prefix(of_head);
  body = body.subspan(sent - of_head);
  auto const rest = co_await wire_.write(head, body);
  if (rest.error == HttpErrc::timed_out) drop_unsent();
  co_return !rest.error;
}

// Empty: the connection ended, or stayed idle for too long, between two requests.
asio::awaitable<Checked<std::optional<Session::Incoming>>> Session::receive_header() {
  auto const& limits = context_.limits;
  if (wire_.buffered().empty()) {
    auto const patience = is_spare_ ? std::min(limits.idle_timeout, spare_patience) : limits.idle_timeout;
    wire_.set_patience({.until = std::chrono::steady_clock::now() + patience});
    if (auto const first = co_await wire_.receive(); first.error) co_return std::nullopt;
    receptions_.heard();
  }
  wire_.set_patience({.until = std::chrono::steady_clock::now() + limits.header_timeout});
  repeated_.arrives(wire_.buffered());
  beast::http::request_parser<beast::http::empty_body> parser;
  if (auto const end = co_await http::receive_header(wire_, parser, limits.header_bytes); end.error) {
    if (end.error == HttpErrc::timed_out) co_return Problem(ProblemCode::request_timeout, "the header came too slowly");
    if (end.error == HttpErrc::too_large)
      co_return Problem(ProblemCode::header_too_large,
                        "the header has more than " + std::to_string(limits.header_bytes) + " bytes");
    if (end.error == HttpErrc::malformed)
      co_return Problem(ProblemCode::bad_request, "not an HTTP/1.1 request: " + end.why);
    co_return std::nullopt;
  }

  auto const& message = parser.get();
  Incoming incoming;
  auto& request = incoming.request;
  request.method = method_of(message.method());
  request.target = view(message.target());
  request.remote = remote_;
  request.caller.certificate_names = certificate_names_;
  for (auto const& field : message)
    request.fields.add(std::string(view(field.name_string())), std::string(view(field.value())));
  if (message.version() != 11 && message.version() != 10)
    co_return Problem(ProblemCode::bad_request, "only HTTP/1.1 and HTTP/1.0 are understood");
  incoming.old_version = message.version() == 10;
  incoming.keep_alive = message.keep_alive();
  auto const framing = request_framing(incoming.old_version ? Version::http_1_0 : Version::http_1_1, request.fields);
  if (!framing) co_return framing.error();
  incoming.framing = *framing;
  if (auto const expect = request.fields.find("Expect"); expect && !incoming.old_version) {
    if (!equals_ignoring_case(*expect, "100-continue"))
      co_return Problem(ProblemCode::bad_request, "Expect is '" + std::string(*expect) + "', expected 100-continue");
    incoming.expects_continue = true;
  }
  auto const has_body = framing->kind == Framing::Kind::chunked || framing->length > 0;
  auto const checked = checked_head(request, has_body);
  if (!checked) co_return checked.error();
  incoming.body_crc32c = *checked;
  auto target = parse_target(request.target);
  if (!target) co_return target.error();
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  co_return std::optional(std::move(incoming));
}

asio::awaitable<Response> Session::respond(Incoming& incoming, Body& body, std::string_view& route) {
  auto& request = incoming.request;
  auto match = context_.router.match(request);
  if (is_spare_ && match.access != Access::open) {
    Problem problem(ProblemCode::unavailable, "too many connections");
    problem.retry_after_s = 1;
    co_return problem_response(std::move(problem), request.path);
  }
  route = match.pattern;
  auto* const guard = context_.door.guard;
  auto stopped = guard == nullptr ? std::nullopt : guard->stop(request, match);
  Response response;
  if (!stopped)
    response = co_await handle(incoming, body, std::move(match));
  else
    response = std::move(*stopped);
  if (response.problem) {
    auto& problem = *response.problem;
    if (problem.instance.empty()) problem.instance = request.path;
    if (auto trace = trace_of(request.fields); trace && problem.trace_id.empty())
      problem.trace_id = std::move(trace->trace_id);
    response.body = to_json(problem);
  }
  if (guard != nullptr) guard->pass(request, route, response);
  // Clients with checksums are services, which do not ask for compression.
  if (!incoming.body_crc32c) compress_if_wanted(request, response);
  co_return response;
}

asio::awaitable<Response> Session::handle(Incoming& incoming, Body& body, Router::Match match) {
  auto const& request = incoming.request;
  if (match.handler == nullptr) {
    auto response = problem_response(match.problem, request.path);
    if (!match.allow.empty()) response.fields.set("Allow", match.allow);
    co_return response;
  }
  if (auto problem = check_query(request, match)) co_return std::move(*problem);
  // A partial PUT that is taken for a complete one would replace the whole resource (RFC 9110, 14.5).
  if (request.method == Method::put && request.fields.find("Content-Range"))
    co_return Problem(ProblemCode::bad_request, "PUT replaces all of it: Content-Range, for a part, is not taken here");
  std::string what;
  std::exception_ptr aborted;
  try {
    auto response = co_await (*match.handler)(request, body);
    co_return response;
  } catch (boost::system::system_error const& error) {
    what = error.what();
    if (error.code() == asio::error::operation_aborted) aborted = std::current_exception();
  } catch (std::exception const& error) { what = error.what(); } catch (...) {
    what = "not a std::exception";
  }
  if (aborted && (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
    std::rethrow_exception(aborted);
  spdlog::error("{} {} from {}: the handler threw: {}", name(request.method), request.path, remote_, what);
  co_return problem_response({ProblemCode::internal, "the request could not be handled; the log says why"},
                             request.path);
}

asio::awaitable<bool> Session::send(Incoming const& incoming, Response response, bool keep_alive) {
  wire_.set_patience(body_patience());
  auto const without_body = incoming.request.method == Method::head || has_no_body(response.status);
  auto const content = without_body ? std::span<std::byte const>() : content_of(response);
  if (incoming.body_crc32c && !response.stream) {
    auto const checksum = co_await checksum_in_turns(std::to_string(response.status), response.fields, content);
    response.fields.set(std::string(message_checksum_field), to_text(checksum));
  }
  write_head(head_, response, context_.date.now(), incoming.old_version, keep_alive);
  auto const sent = co_await wire_.write(head_, content);
  if (!sent.error && response.stream && !without_body)
    co_return co_await send_stream(incoming.old_version, std::move(response));
  if (sent.error == HttpErrc::timed_out) drop_unsent();
  co_return !sent.error;
}

asio::awaitable<bool> Session::send_stream(bool old_version, Response response) {
  constexpr std::string_view last_chunk = "0\r\n\r\n";
  auto const length = response.stream_length;
  bool const is_of_events = response.fields.find("Content-Type") == "text/event-stream";  // may be long in coming
  bool const is_chunked = !old_version && !length;
  auto left = length.value_or(0);
  for (;;) {
    waits_for_client_ = is_of_events;
    auto piece = co_await response.stream();
    waits_for_client_ = false;
    // Each piece has its own time limit: the client is not responsible for the time between two pieces.
    wire_.set_patience(body_patience());
    if (piece.empty()) break;
    CHORUS_ASSERT(!length || piece.size() <= left, "a stream is not longer than it says");
    if (length) left -= piece.size();
    auto const head = is_chunked ? chunk_head(piece.size()) : std::string();
    if (is_chunked) piece += "\r\n";
    auto const sent = co_await wire_.write(head, std::as_bytes(std::span(piece)));
    if (sent.error == HttpErrc::timed_out) drop_unsent();
    if (sent.error) co_return false;
  }
  if (left > 0) spdlog::warn("{}: the body of an answer ended {} bytes before its length", remote_, left);
  if (!is_chunked) co_return left == 0;
  co_return !(co_await wire_.write(last_chunk, {})).error;
}

// Resets the connection when it closes. Otherwise the system would keep megabytes that the client does not read, and
// try for minutes.
void Session::drop_unsent() {
  boost::system::error_code ignored;
  wire_.socket().set_option(asio::ip::tcp::socket::linger(true, 0), ignored);
}

asio::awaitable<Session::Next> Session::hand_over(Incoming const& incoming, Response response) {
  CHORUS_ASSERT(response.upgrade, "a handler that answers 101 says who takes the connection over");
  wire_.set_patience(body_patience());
  write_head(head_, response, context_.date.now(), incoming.old_version, true);
  auto const sent = co_await wire_.write(head_, {});
  if (sent.error) co_return Next::close;
  std::string early_bytes(wire_.buffered());
  try {
    auto tls = wire_.release_tls();
    Connection connection(std::move(wire_.socket()), std::move(tls), std::move(early_bytes));
    response.upgrade(std::move(connection));
  } catch (std::exception const& error) { spdlog::error("{}: the upgrade threw: {}", remote_, error.what()); }
  co_return Next::handed_over;
}

// Ends the sending direction, and for a moment reads what still arrives. A close with unread bytes in the socket would
// make the system reset the connection, and the peer might never see the response.
asio::awaitable<void> Session::linger() {
  constexpr std::chrono::milliseconds longest{2000};
  if (wire_.end_sending()) co_return;
  wire_.set_patience({.until = std::chrono::steady_clock::now() + std::min(longest, context_.limits.header_timeout)});
  for (;;) {
    wire_.consume(wire_.buffered().size());
    if (auto const more = co_await wire_.receive(); more.error) co_return;
  }
}

void Session::observe(Method method, std::string_view route, unsigned status, TimePoint started) const {
  if (context_.observer) context_.observer({method, route, status, std::chrono::steady_clock::now() - started});
}

}  // namespace chorus::http
