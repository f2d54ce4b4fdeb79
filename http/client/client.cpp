#include "http/client/client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <list>

#include "base/ascii.hpp"
#include "base/runtime/socket_options.hpp"
#include "http/auth/credentials.hpp"
#include "http/client/connection_pool.hpp"
#include "http/client/resolve.hpp"
#include "http/client/turns.hpp"
#include "http/wire/body_reader.hpp"
#include "http/wire/errc.hpp"
#include "http/wire/header_text.hpp"
#include "http/wire/receive_header.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t header_bytes_max = 16384;
constexpr std::size_t refusal_bytes_max = 65536;  // limit for the body of a refused upgrade
constexpr std::size_t piece_bytes = 4 << 20;      // pieces of a payload whose progress is reported

struct AnswerHead {
  unsigned status = 0;
  Fields fields;
  bool keep_alive = false;
};

std::string authority_of(Url const& url) {
  auto const host = url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  return host + ":" + std::to_string(url.port);
}

bool idempotent(Method method) { return method != Method::post && method != Method::other; }

std::size_t content_bytes_of(Call const& call) {
  auto const [first, rest] = content_of(call);
  return first.size() + rest.size();
}

std::string head_of(Call const& call, Url const& url, std::string const& authorization) {
  auto const content_bytes = content_bytes_of(call);
  std::string head;
  head.reserve(256);
  head += name(call.method);
  head += ' ';
  head += url.path.empty() ? "/" : url.path;
  head += " HTTP/1.1\r\n";
  append_field(head, "Host", authority_of(url));
  if (!authorization.empty()) append_field(head, "Authorization", authorization);
  for (auto const& [name, value] : call.fields) append_field(head, name, value);
  if (content_bytes > 0 || call.method == Method::put || call.method == Method::post)
    append_field(head, "Content-Length", std::to_string(content_bytes));
  if (content_bytes > 0 && !call.fields.find("Content-Type"))
    append_field(head, "Content-Type", call.payload.empty() ? "application/json" : "application/octet-stream");
  head += "\r\n";
  return head;
}

Error failure(Wire const& wire, std::error_code code, std::string const& url) {
  if (code == HttpErrc::timed_out) return {code, url + ": no answer before the deadline"};
  if (code == HttpErrc::too_large) return {code, url + ": the answer is too large"};
  if (code == HttpErrc::malformed) return {code, url + ": the answer is not HTTP"};
  return {code, url + ": " + wire.reason()};
}

// True if the beginning of a final answer, not an interim one, is in the wire's buffer.
bool has_answer(Wire const& wire) {
  constexpr std::size_t status_at = 9;  // position in "HTTP/1.1 413"
  auto const bytes = wire.buffered();
  return bytes.size() > status_at && bytes[status_at] != '1';
}

asio::awaitable<Wire::Moved> send_request(Wire& wire, std::string_view head, Call const& call) {
  Wire::Moved total;
  std::uint64_t content_bytes = 0;
  auto const parts = content_of(call);
  for (auto content : parts) {
    while (!(content.empty() && head.empty())) {
      auto const piece = call.on_sent ? content.first(std::min(content.size(), piece_bytes)) : content;
      auto const sent = co_await wire.write(head, piece);
      total.bytes += sent.bytes;
      total.error = sent.error;
      if (total.error) co_return total;
      head = {};
      content = content.subspan(piece.size());
      content_bytes += piece.size();
      if (!call.on_sent) continue;
      call.on_sent(content_bytes);
      wire.receive_now();
      if (has_answer(wire)) co_return total;
    }
  }
  co_return total;
}

// Skips 100 Continue and other interim answers.
asio::awaitable<Result<AnswerHead>> receive_head(Wire& wire, std::string url, bool upgrading) {
  for (;;) {
    beast::http::response_parser<beast::http::empty_body> parser;
    if (auto const end = co_await receive_header(wire, parser, header_bytes_max); end.error) {
      if (!end.why.empty()) co_return Error(end.error, url + ": not an HTTP answer: " + end.why);
      co_return failure(wire, end.error, url);
    }
    auto const& message = parser.get();
    AnswerHead head;
    head.status = message.result_int();
    if (head.status / 100 == 1 && !(upgrading && head.status == 101)) continue;
    for (auto const& field : message) head.fields.add(std::string(field.name_string()), std::string(field.value()));
    auto const connection = head.fields.find("Connection").value_or("");
    head.keep_alive = message.version() == 11 && !list_contains(connection, "close");
    co_return head;
  }
}

asio::awaitable<Result<std::string>> receive_body(Wire& wire, BodyReader& reader, std::size_t limit, std::string url) {
  if (reader.framing().length > limit) co_return failure(wire, HttpErrc::too_large, url);
  // The buffer grows with the bytes that arrive, not with the announced length.
  constexpr std::size_t first_bytes_max = 4096;
  auto const first_bytes = reader.framing().kind == Framing::Kind::length
                               ? std::min<std::size_t>(reader.framing().length, first_bytes_max)
                               : first_bytes_max;
  std::string body;
  std::size_t filled = 0;
  while (!reader.finished()) {
    if (filled == body.size()) body.resize(std::min(std::max(2 * filled, first_bytes), limit + 1));
    auto const moved = co_await reader.read_some(std::as_writable_bytes(std::span(body).subspan(filled)));
    filled += moved.bytes;
    if (moved.error) co_return failure(wire, moved.error, url);
    if (filled > limit) co_return failure(wire, HttpErrc::too_large, url);
  }
  body.resize(filled);
  co_return body;
}

asio::awaitable<Result<std::size_t>> receive_into(Wire& wire, BodyReader& reader, Call const& call) {
  auto const destination = call.destination;
  auto const& url = call.url;
  std::size_t filled = 0;
  if (reader.framing().length > destination.size()) co_return failure(wire, HttpErrc::too_large, url);
  while (!reader.finished()) {
    std::byte beyond{};
    auto const is_full = filled == destination.size();
    auto const moved = co_await reader.read_some(is_full ? std::span(&beyond, 1) : destination.subspan(filled));
    if (moved.error) co_return failure(wire, moved.error, url);
    if (is_full && moved.bytes > 0) co_return failure(wire, HttpErrc::too_large, url);
    filled += moved.bytes;
    if (call.on_received) call.on_received(filled);
  }
  co_return filled;
}

bool is_local_limit(boost::system::error_code error) {
  using namespace boost::system::errc;
  return error == too_many_files_open || error == too_many_files_open_in_system || error == no_buffer_space ||
         error == not_enough_memory || error == address_not_available;
}

}  // namespace

Problem Answer::problem() const {
  auto problem = problem_from_json(body, status);
  if (auto const seconds = fields.find("Retry-After"); seconds && !problem.retry_after_s)
    if (auto const value = parse_content_length(*seconds); value && *value <= UINT32_MAX)
      problem.retry_after_s = static_cast<std::uint32_t>(*value);
  return problem;
}

class Client::Impl {
 public:
  Impl(asio::any_io_executor executor, Credentials const* credentials)
      : executor_(std::move(executor)), credentials_(credentials) {}

  asio::awaitable<Result<Answer>> send(Call call, TimePoint deadline);
  void take_turns(std::vector<std::string> urls) { turns_.emplace_back(std::move(urls)); }
  asio::awaitable<Result<Upgraded>> upgrade(std::string url, std::string protocol, Fields fields, TimePoint deadline);
  void close() { pool_.close(); }

 private:
  asio::awaitable<Result<Answer>> send_to(Call call, TimePoint deadline);
  asio::awaitable<Result<std::unique_ptr<Wire>>> connect(Url url, std::string text, TimePoint deadline);
  asio::awaitable<Result<Answer>> exchange(Call const& call, Url const& url, std::string const& authorization,
                                           Wire& wire, bool& reusable);
  asio::awaitable<Result<Upgraded>> upgrade_as(std::string authorization, std::string url, std::string protocol,
                                               Fields fields, TimePoint deadline, bool& is_unauthorized);
  [[nodiscard]] std::optional<Error> refused_at_once(std::string const& url, TimePoint deadline) const;

  asio::awaitable<std::optional<Error>> secure(Wire& wire, Url const& url, std::string const& text);
  [[nodiscard]] std::string authorization() const { return credentials_ ? credentials_->authorization() : ""; }
  // Returns new credentials in place of the refused ones; "" if there are none.
  [[nodiscard]] std::string another(std::string const& refused) const {
    auto other = credentials_ ? credentials_->authorization_after(refused) : std::string();
    return other == refused ? std::string() : other;
  }

  asio::any_io_executor executor_;
  Credentials const* credentials_;
  ConnectionPool pool_;
  std::list<Turns> turns_;
};

std::optional<Error> Client::Impl::refused_at_once(std::string const& url, TimePoint deadline) const {
  if (pool_.closed()) return Error(HttpErrc::peer_closed, url + ": the client is closed");
  if (std::chrono::steady_clock::now() >= deadline)
    return Error(HttpErrc::timed_out, url + ": the deadline has passed");
  return std::nullopt;
}

asio::awaitable<Result<std::unique_ptr<Wire>>> Client::Impl::connect(Url url, std::string text, TimePoint deadline) {
  auto const endpoints = co_await resolve(url.host, url.port, deadline);
  if (!endpoints) co_return Error(endpoints.error().code, text + ": " + endpoints.error().detail);
  std::string reason = "the name has no address";
  bool local = false, dropped = false, all_refuse = !endpoints->empty();
  for (auto const& endpoint : *endpoints) {
    if (auto error = refused_at_once(text, deadline)) co_return std::move(*error);
    auto wire = std::make_unique<Wire>(tcp::socket(executor_), header_bytes_max);
    ConnectionPool::InUse const in_use(pool_, *wire, executor_, deadline);
    prepare_to_connect(wire->socket(), endpoint);
    auto const [error] = co_await wire->socket().async_connect(endpoint, tuple_awaitable);
    if (!error) {
      auto const insecure = co_await secure(*wire, url, text);
      if (insecure) co_return *insecure;
      co_return wire;
    }
    if (wire->expired()) co_return Error(HttpErrc::timed_out, text + ": no connection before the deadline");
    if (error == asio::error::operation_aborted) co_return Error(HttpErrc::peer_closed, text + ": cancelled");
    local = is_local_limit(error);
    all_refuse &= error == asio::error::connection_refused;
    dropped = error == asio::error::connection_reset;  // a process accepted the connection, so this is no refusal
    reason = error.message();
    if (!reason.empty()) reason.front() = to_lower(reason.front());
  }
  auto const code = local        ? HttpErrc::local_limit
                    : dropped    ? HttpErrc::peer_closed
                    : all_refuse ? HttpErrc::connect_failed
                                 : HttpErrc::no_way;
  co_return Error(code, text + ": " + reason);
}

asio::awaitable<std::optional<Error>> Client::Impl::secure(Wire& wire, Url const& url, std::string const& text) {
  if (url.scheme != "https") co_return std::nullopt;
  auto const context = credentials_ == nullptr ? nullptr : credentials_->tls();
  if (!context) co_return Error(HttpErrc::tls_failed, text + ": this client has no TLS");
  auto stream = TlsStream::connect(context, wire.socket().native_handle(), url.host);
  auto const secured = co_await wire.secure(std::move(stream));
  if (!secured.error) co_return std::nullopt;
  if (secured.error == HttpErrc::timed_out)
    co_return Error(HttpErrc::timed_out, text + ": no connection before the deadline");
  co_return Error(HttpErrc::tls_failed, text + ": " + wire.reason());
}

asio::awaitable<Result<Answer>> Client::Impl::exchange(Call const& call, Url const& url,
                                                       std::string const& authorization, Wire& wire, bool& reusable) {
  auto const head = head_of(call, url, authorization);
  auto const sent = co_await send_request(wire, head, call);
  auto const is_whole = sent.bytes == head.size() + content_bytes_of(call);
  // A peer that refuses may answer and close before it has read everything; its answer is used.
  if (sent.error && (sent.error != HttpErrc::peer_closed || wire.cancelled()))
    co_return failure(wire, sent.error, call.url);
  auto answer_head = co_await receive_head(wire, call.url, false);
  if (!answer_head) co_return std::move(answer_head).error();
  Answer answer;
  answer.status = answer_head->status;
  answer.fields = std::move(answer_head->fields);
  auto const framing = answer_framing(call.method, answer.status, answer.fields);
  if (!framing) co_return Error(HttpErrc::malformed, call.url + ": " + framing.error().detail);
  BodyReader reader(wire, *framing);
  if (answer.ok() && !call.destination.empty()) {
    auto const received = co_await receive_into(wire, reader, call);
    if (!received) co_return received.error();
    answer.received_bytes = *received;
  } else {
    auto body = co_await receive_body(wire, reader, call.answer_limit_bytes, call.url);
    if (!body) co_return std::move(body).error();
    answer.body = std::move(*body);
  }
  reusable =
      answer_head->keep_alive && is_whole && framing->kind != Framing::Kind::until_close && wire.buffered().empty();
  co_return answer;
}

asio::awaitable<Result<Answer>> Client::Impl::send(Call call, TimePoint deadline) {
  auto const one = [this](Call sent, TimePoint until) { return send_to(std::move(sent), until); };
  for (auto& turns : turns_)
    if (turns.has(call.url)) co_return co_await turns.send(std::move(call), deadline, one);
  co_return co_await send_to(std::move(call), deadline);
}

asio::awaitable<Result<Answer>> Client::Impl::send_to(Call call, TimePoint deadline) {
  auto const url = parse_url(call.url);
  if (!url) co_return url.error();
  auto const authority = url->scheme + "://" + authority_of(*url);
  auto wire = pool_.take(authority);
  auto shown = authorization();
  bool has_shown_another = false;
  for (bool kept = wire != nullptr;; kept = false, wire = nullptr) {
    if (auto error = refused_at_once(call.url, deadline)) co_return std::move(*error);
    if (!kept) {
      auto connected = co_await connect(*url, call.url, deadline);
      if (!connected) co_return std::move(connected).error();
      wire = std::move(*connected);
    }
    wire->set_patience({});
    wire->forget_received();
    ConnectionPool::InUse const in_use(pool_, *wire, executor_, deadline);
    bool reusable = false;
    auto answer = co_await exchange(call, *url, shown, *wire, reusable);
    if (answer) {
      if (reusable) pool_.give_back(authority, std::move(wire));
      constexpr unsigned unauthorized = 401;
      if (answer->status != unauthorized || std::exchange(has_shown_another, true)) co_return answer;
      // A refused caller has changed nothing, so any method may be repeated.
      shown = another(shown);
      if (shown.empty()) co_return answer;
      continue;
    }
    auto const closed_while_idle =
        kept && answer.error().code == HttpErrc::peer_closed && !wire->anything_received() && !wire->cancelled();
    if (!closed_while_idle || !(idempotent(call.method) || call.repeatable)) co_return answer;
  }
}

asio::awaitable<Result<Client::Upgraded>> Client::Impl::upgrade(std::string url, std::string protocol, Fields fields,
                                                                TimePoint deadline) {
  auto const shown = authorization();
  bool is_unauthorized = false;
  auto upgraded = co_await upgrade_as(shown, url, protocol, fields, deadline, is_unauthorized);
  if (!is_unauthorized) co_return upgraded;
  auto other = another(shown);
  if (other.empty()) co_return upgraded;
  co_return co_await upgrade_as(std::move(other), std::move(url), std::move(protocol), std::move(fields), deadline,
                                is_unauthorized);
}

asio::awaitable<Result<Client::Upgraded>> Client::Impl::upgrade_as(std::string authorization, std::string url,
                                                                   std::string protocol, Fields fields,
                                                                   TimePoint deadline, bool& is_unauthorized) {
  auto const parsed = parse_url(url);
  if (!parsed) co_return parsed.error();
  if (auto error = refused_at_once(url, deadline)) co_return std::move(*error);
  auto connected = co_await connect(*parsed, url, deadline);
  if (!connected) co_return std::move(connected).error();
  auto& wire = **connected;
  ConnectionPool::InUse const in_use(pool_, wire, executor_, deadline);

  Call call;
  call.url = url;
  call.fields = std::move(fields);
  call.fields.set("Connection", "Upgrade");
  call.fields.set("Upgrade", protocol);
  auto const head = head_of(call, *parsed, authorization);
  if (auto const sent = co_await wire.write(head, {}); sent.error) co_return failure(wire, sent.error, url);
  auto answer = co_await receive_head(wire, url, true);
  if (!answer) co_return std::move(answer).error();
  if (answer->status == 101) {
    if (!equals_ignoring_case(answer->fields.find("Upgrade").value_or(""), protocol))
      co_return Error(HttpErrc::malformed, url + ": upgraded to something else than " + protocol);
    auto tls = wire.release_tls();
    Connection connection(std::move(wire.socket()), std::move(tls), std::string(wire.buffered()));
    Result<Upgraded> upgraded(Upgraded(std::move(connection), std::move(answer->fields)));
    co_return std::move(upgraded);
  }
  is_unauthorized = answer->status == 401;
  auto const framing = answer_framing(Method::get, answer->status, answer->fields);
  if (!framing) co_return Error(HttpErrc::malformed, url + ": " + framing.error().detail);
  BodyReader reader(wire, *framing);
  auto const body = co_await receive_body(wire, reader, refusal_bytes_max, url);
  if (!body) co_return body.error();
  auto const problem = problem_from_json(*body, answer->status);
  co_return Error(HttpErrc::refused_upgrade, url + ": " + std::to_string(answer->status) + " " +
                                                 std::string(kind(problem.code).name) + ": " + problem.detail);
}

Client::Client(asio::any_io_executor executor, Credentials const* credentials)
    : impl_(std::make_unique<Impl>(std::move(executor), credentials)) {}

Client::~Client() = default;

asio::awaitable<Result<Answer>> Client::send(Call call, TimePoint deadline) {
  return impl_->send(std::move(call), deadline);
}

asio::awaitable<Result<Client::Upgraded>> Client::upgrade(std::string url, std::string protocol, Fields fields,
                                                          TimePoint deadline) {
  return impl_->upgrade(std::move(url), std::move(protocol), std::move(fields), deadline);
}

void Client::take_turns(std::vector<std::string> urls) { impl_->take_turns(std::move(urls)); }
void Client::close() { impl_->close(); }

}  // namespace chorus::http
