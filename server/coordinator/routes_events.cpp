#include <charconv>

#include "http/paging.hpp"
#include "server/coordinator/routes.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Problem;
using http::ProblemCode;
using http::Request;
using http::Response;

using Sequence = std::optional<std::uint64_t>;

http::Checked<Sequence> sequence_of(std::string const& title, std::optional<std::string_view> text) {
  if (!text) return Sequence();
  std::uint64_t value = 0;
  auto const [end, failure] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (failure == std::errc() && end == text->data() + text->size()) return Sequence(value);
  return Problem(ProblemCode::bad_request, title + " is not the number of an event");
}

// A browser that comes again sends the query of its first request, and in the field where it has got to.
http::Checked<Sequence> since_of(Request const& request) {
  auto const last = sequence_of("Last-Event-ID", request.fields.find("Last-Event-ID"));
  if (last.has_error() || last.value()) return last;
  return sequence_of("query parameter since", request.query_value("since"));
}

bool wants_a_page(Request const& request) {
  auto const accept = request.fields.find("Accept").value_or("");
  return accept.find("application/json") != std::string_view::npos &&
         accept.find("text/event-stream") == std::string_view::npos;
}

}  // namespace

void EventRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/events", http::Access::read, handler(this, &EventRoutes::get));
}

awaitable<Response> EventRoutes::get(Request const& request, Body&) {
  auto const since = since_of(request);
  if (since.has_error()) co_return since.error();
  if (wants_a_page(request)) co_return co_await page(request, since.value());
  auto stream = events_.follow(since.value());
  if (stream.has_error()) co_return stream.error();
  Response response(200);
  response.fields.set("Content-Type", "text/event-stream");
  response.fields.set("Cache-Control", "no-store");
  response.fields.set("X-Accel-Buffering", "no");  // proxies that collect answers would hold events back
  response.stream = std::move(stream.value());
  co_return response;
}

awaitable<Response> EventRoutes::page(Request const& request, Sequence since) {
  auto const page = http::page_of(request);
  if (page.has_error()) co_return page.error();
  auto const cursor = sequence_of("query parameter cursor", request.query_value("cursor"));
  if (cursor.has_error()) co_return cursor.error();
  co_await events_.settle();
  auto const after = cursor.value() ? *cursor.value() : since.value_or(events_.oldest() - 1);
  auto const list = events_.page(after, page.value().limit);
  if (list.has_error()) co_return list.error();
  co_return Response::json(200, http::encode(list.value()));
}

}  // namespace chorus::coordinator
