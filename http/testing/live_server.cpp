#include "http/testing/live_server.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <stdexcept>

namespace chorus::http::testing {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds patience{10};

std::size_t number(std::string const& text) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The connection after the upgrade: moves to another io_context, as links do, reports the early bytes, and closes.
void tell_early_bytes(Connection connection) {
  asio::io_context elsewhere;
  boost::system::error_code ignored;
  auto const protocol = connection.socket.local_endpoint(ignored).protocol();
  asio::ip::tcp::socket moved(elsewhere, protocol, connection.socket.release());
  asio::write(moved, asio::buffer("early:" + connection.early_bytes), ignored);
}

}  // namespace

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  std::uint64_t state = 1;
  for (auto& byte : result) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return result;
}

LiveServer::LiveServer(ServerLimits limits, Door door)
    : scheme_(door.tls != nullptr ? "https" : "http"),
      server_(
          io_.get_executor(), router_, limits,
          [this](Exchange const& exchange) {
            std::lock_guard const lock(mutex_);
            seen_.push_back({exchange.method, std::string(exchange.route), exchange.status});
            changed_.notify_all();
          },
          door),
      work_(asio::make_work_guard(io_)) {
  add(Method::get, "/hello", &LiveServer::hello);
  add(Method::put, "/echo", &LiveServer::echo);
  add(Method::put, "/exactly/{bytes}", &LiveServer::exactly);
  add(Method::put, "/store", &LiveServer::store);
  add(Method::get, "/payload/{bytes}", &LiveServer::payload);
  add(Method::put, "/ignore", &LiveServer::ignore);
  add(Method::put, "/refuse", &LiveServer::refuse);
  add(Method::get, "/throw", &LiveServer::fail);
  add(Method::get, "/stream/{pieces}", &LiveServer::stream);
  add(Method::get, "/silence", &LiveServer::silence);
  add(Method::get, "/wait", &LiveServer::wait);
  add(Method::put, "/heard", &LiveServer::heard);
  router_.add(Method::post, "/once", Access::open,
              once_.wrap([this](Request const& request, Body& body) { return heard(request, body); }));
  add(Method::get, "/upgrade", &LiveServer::upgrade);
  add(Method::get, "/inject", &LiveServer::inject);
  port_ = server_.listen("127.0.0.1", 0).value();
  thread_ = std::thread([this] { io_.run(); });
}

LiveServer::~LiveServer() {
  stop();
  work_.reset();
  thread_.join();
}

void LiveServer::stop() {
  if (std::exchange(stopped_, true)) return;
  asio::co_spawn(io_, server_.stop(), asio::use_future).get();
}

std::string LiveServer::url(std::string const& path) const {
  return scheme_ + "://127.0.0.1:" + std::to_string(port_) + path;
}

std::size_t LiveServer::open_connections() {
  return asio::post(io_, asio::use_future([this] { return server_.open_connections(); })).get();
}

bool LiveServer::wait_for_connections(std::size_t count) {
  auto const until = std::chrono::steady_clock::now() + patience;
  while (open_connections() != count) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

std::vector<Seen> LiveServer::seen() {
  std::lock_guard const lock(mutex_);
  return seen_;
}

bool LiveServer::wait_until_seen(std::size_t exchanges) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return seen_.size() >= exchanges; });
}

std::vector<std::byte> LiveServer::take_stored() {
  std::lock_guard const lock(mutex_);
  return std::move(stored_);
}

bool LiveServer::wait_for_waiting(std::size_t requests) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return waiting_ >= requests; });
}

bool LiveServer::wait_for_the_end_of_streams() {
  auto const until = std::chrono::steady_clock::now() + patience;
  auto const has_ended = [this] { return stream_.expired(); };
  while (!asio::post(io_, asio::use_future(has_ended)).get()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

std::size_t LiveServer::connections_used() {
  std::lock_guard const lock(mutex_);
  return peers_.size();
}

void LiveServer::add(Method method, std::string_view path_pattern,
                     asio::awaitable<Response> (LiveServer::*handler)(Request const&, Body&)) {
  router_.add(method, path_pattern, Access::open, [this, handler](Request const& request, Body& body) {
    note_peer(request);
    return (this->*handler)(request, body);
  });
}

void LiveServer::note_peer(Request const& request) {
  std::lock_guard const lock(mutex_);
  if (std::find(peers_.begin(), peers_.end(), request.remote) == peers_.end()) peers_.push_back(request.remote);
}

asio::awaitable<Response> LiveServer::hello(Request const&, Body&) { co_return Response::text(200, "hello\n"); }

asio::awaitable<Response> LiveServer::echo(Request const&, Body& body) {
  auto text = co_await body.read_all(1 << 20);
  if (!text) co_return text.error();
  co_return Response::text(200, std::move(*text));
}

asio::awaitable<Response> LiveServer::exactly(Request const& request, Body& body) {
  std::string text(number(request.parameter("bytes")), '\0');
  auto const read = co_await body.read_exactly(std::as_writable_bytes(std::span(text)));
  if (!read) co_return read.error();
  co_return Response::text(200, std::move(text));
}

asio::awaitable<Response> LiveServer::store(Request const&, Body& body) {
  if (!body.length()) co_return Problem(ProblemCode::length_required, "no Content-Length");
  std::vector<std::byte> bytes(*body.length());
  // Reads two parts, to test that the second continues where the first ended.
  auto const half = bytes.size() / 3;
  auto read = co_await body.read_exactly(std::span(bytes).first(half));
  if (read) read = co_await body.read_exactly(std::span(bytes).subspan(half));
  if (!read) co_return read.error();
  std::lock_guard const lock(mutex_);
  stored_ = std::move(bytes);
  co_return Response(204);
}

asio::awaitable<Response> LiveServer::payload(Request const& request, Body&) {
  auto const bytes = std::make_shared<std::vector<std::byte> const>(pattern(number(request.parameter("bytes"))));
  Response response(200);
  response.payload = {bytes, *bytes};
  co_return response;
}

asio::awaitable<Response> LiveServer::ignore(Request const&, Body&) { co_return Response(204); }

asio::awaitable<Response> LiveServer::refuse(Request const&, Body&) {
  co_return Problem(ProblemCode::busy, "a collective writes here");
}

asio::awaitable<Response> LiveServer::fail(Request const&, Body&) {
  if (port_ != 0) throw std::runtime_error("the secret of the handler");
  co_return Response(200);
}

asio::awaitable<Response> LiveServer::stream(Request const& request, Body&) {
  auto const left = std::make_shared<std::size_t>(number(request.parameter("pieces")));
  stream_ = left;
  Response response(200);
  response.fields.set("Content-Type", "text/plain");
  response.stream = [this, left, endless = *left == 0] { return piece(left, endless); };
  if (auto const length = request.query_value("length")) response.stream_length = number(std::string(*length));
  co_return response;
}

asio::awaitable<std::string> LiveServer::piece(std::shared_ptr<std::size_t> left, bool endless) {
  constexpr std::size_t endless_piece_bytes = 100000;
  if (endless) co_return std::string(endless_piece_bytes, 'x');
  if (*left == 0) co_return "";
  asio::steady_timer soon(io_, std::chrono::milliseconds(1));  // simulates a piece that is produced later
  co_await soon.async_wait(asio::use_awaitable);
  co_return "piece " + std::to_string((*left)--) + "\n";
}

void LiveServer::note_waiting() {
  std::lock_guard const lock(mutex_);
  ++waiting_;
  changed_.notify_all();
}

void LiveServer::answer_heard() {
  asio::post(io_, [this] { answers_.notify_all(); });
}

Reception::State LiveServer::reception(std::size_t request) {
  return asio::post(io_, asio::use_future([this, request] { return receptions_.at(request)->state(); })).get();
}

asio::awaitable<Response> LiveServer::heard(Request const&, Body& body) {
  receptions_.push_back(reception_of(body));
  note_waiting();
  co_await answers_.wait_until(TimePoint::max());
  co_return Response(204);
}

asio::awaitable<Response> LiveServer::silence(Request const&, Body&) {
  auto const stream = std::make_shared<std::size_t>();
  stream_ = stream;
  Response response(200);
  response.stream = [this, stream] { return no_event(stream); };
  response.fields.set("Content-Type", "text/event-stream");
  co_return response;
}

asio::awaitable<std::string> LiveServer::no_event(std::shared_ptr<std::size_t>) {
  note_waiting();
  asio::steady_timer timer(io_, TimePoint::max());
  co_await timer.async_wait(asio::use_awaitable);
  co_return "";
}

asio::awaitable<Response> LiveServer::wait(Request const&, Body&) {
  note_waiting();
  if (on_wait) on_wait();
  asio::steady_timer timer(io_, TimePoint::max());
  co_await timer.async_wait(asio::use_awaitable);
  co_return Response(200);
}

asio::awaitable<Response> LiveServer::upgrade(Request const& request, Body&) {
  auto const protocol = request.fields.find("Upgrade");
  if (protocol != "test/1") co_return Problem(ProblemCode::plan_mismatch, "only test/1 here");
  Response response(101);
  response.fields.set("Connection", "Upgrade");
  response.fields.set("Upgrade", "test/1");
  response.upgrade = tell_early_bytes;
  co_return response;
}

asio::awaitable<Response> LiveServer::inject(Request const&, Body&) {
  auto response = Response::text(200, "x");
  response.fields.set("Location", "/a\r\nSet-Cookie: b");
  co_return response;
}

}  // namespace chorus::http::testing
