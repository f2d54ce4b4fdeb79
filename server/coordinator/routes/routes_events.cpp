#include "http/routing/paging.hpp"
#include "server/coordinator/routes/routes.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Problem;
using http::ProblemCode;
using http::Request;
using http::Response;

using Position = std::optional<EventPosition>;

http::Checked<Position> position_of(std::string const& title, std::optional<std::string_view> text) {
  if (!text) return Position();
  if (auto const position = parse_event_position(*text)) return Position(*position);
  return Problem(ProblemCode::bad_request,
                 title + " is not the position of an event; expected a number, or what a stream said as id");
}

// Returns the position of a reader whose connection has ended.
http::Checked<Position> last_of(Request const& request) {
  return position_of("Last-Event-ID", request.fields.find("Last-Event-ID"));
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

// A browser that resumes sends the query of its first request, and its position in the header field.
awaitable<Response> EventRoutes::get(Request const& request, Body&) {
  auto const last = last_of(request);
  if (last.has_error()) co_return last.error();
  auto const since = position_of("query parameter since", request.query_value("since"));
  if (since.has_error()) co_return since.error();
  if (wants_a_page(request)) co_return co_await page(request, last.value() ? last.value() : since.value());
  auto stream = last.value() ? events_.resume(*last.value()) : events_.follow(since.value());
  if (stream.has_error()) co_return stream.error();
  Response response(200);
  response.fields.set("Content-Type", "text/event-stream");
  response.fields.set("Cache-Control", "no-store");
  response.fields.set("X-Accel-Buffering", "no");  // proxies that buffer answers would delay events
  response.stream = std::move(stream.value());
  co_return response;
}

awaitable<Response> EventRoutes::page(Request const& request, std::optional<EventPosition> since) {
  auto const page = http::page_of(request);
  if (page.has_error()) co_return page.error();
  auto const cursor = position_of("query parameter cursor", request.query_value("cursor"));
  if (cursor.has_error()) co_return cursor.error();
  co_await events_.settle();
  auto after = cursor.value() ? *cursor.value() : since.value_or(EventPosition{events_.log(), events_.oldest() - 1});
  auto const list = events_.page(after, page.value().limit);
  if (list.has_error()) co_return list.error();
  co_return Response::json(200, http::encode(list.value()));
}

}  // namespace chorus::coordinator
