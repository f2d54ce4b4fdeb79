#include "collectives/core/nearest_name.hpp"
#include "http/message/idempotency_key.hpp"
#include "http/message/reception.hpp"
#include "http/message/trace_context.hpp"
#include "http/routing/paging.hpp"
#include "server/coordinator/routes/routes.hpp"
#include "server/coordinator/text/duration.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Method;
using http::Problem;
using http::ProblemCode;
using http::Request;
using http::Response;

// A launch that was admitted by the cache is refused only after the workers have refused its runs, some milliseconds
// later than a launch that asks. A caller that waits this long still gets the refusal.
constexpr std::chrono::milliseconds wait_for_refusals{900};

// Returns the time until which the request waits: ?wait=30s from now, or no wait.
http::Checked<TimePoint> wait_until(Request const& request) {
  auto const now = std::chrono::steady_clock::now();
  auto const text = request.query_value("wait");
  if (!text) return now;
  auto const wait = parse_duration(*text);
  if (wait.has_error()) return Problem(ProblemCode::bad_request, "query parameter wait: " + wait.error().detail);
  return now + wait.value();
}

http::Checked<bool> validate_only(Request const& request) {
  auto const text = request.query_value("validate_only").value_or("false");
  if (text == "true") return true;
  if (text == "false") return false;
  return Problem(ProblemCode::bad_request,
                 "query parameter validate_only: " + unknown_name("value", text, {"true", "false"}));
}

Response shown(Record const& record, unsigned status) {
  auto response = Response::json(status, http::encode(record.view()));
  if (!record.ended()) response.fields.set("Retry-After", "1");
  return response;
}

}  // namespace

void CollectiveRoutes::add_to(http::Router& router) {
  router.add(Method::get, "/v1/collectives", http::Access::read, handler(this, &CollectiveRoutes::list));
  router.add(Method::post, "/v1/collectives", http::Access::submit, handler(this, &CollectiveRoutes::post));
  router.add(Method::get, "/v1/collectives/{id}", http::Access::read, handler(this, &CollectiveRoutes::get));
  router.add(Method::put, "/v1/collectives/{id}", http::Access::submit, handler(this, &CollectiveRoutes::put));
  router.add(Method::delete_, "/v1/collectives/{id}", http::Access::submit, handler(this, &CollectiveRoutes::cancel));
}

awaitable<Response> CollectiveRoutes::list(Request const& request, Body&) {
  auto const page = http::page_of(request);
  if (page.has_error()) co_return page.error();
  auto const list = collectives_.records().list(page.value().limit, page.value().after);
  if (list.has_error()) co_return list.error();
  co_return Response::json(200, http::encode(list.value()));
}

awaitable<Response> CollectiveRoutes::get(Request const& request, Body&) {
  auto const until = wait_until(request);
  if (until.has_error()) co_return until.error();
  auto const record = collectives_.records().find(request.parameter("id"));
  if (record.has_error()) co_return record.error();
  co_await collectives_.wait(record.value(), until.value());
  co_return shown(*record.value(), 200);
}

awaitable<Response> CollectiveRoutes::post(Request const& request, Body& body) {
  auto key = http::idempotency_key(request.fields);
  if (key.has_error()) co_return key.error();
  // Names are variables, not temporaries: GCC 12 destroys an aggregate temporary of a co_await expression twice.
  Records::Name name{std::nullopt, std::move(key.value())};
  co_return co_await launch(request, body, std::move(name));
}

awaitable<Response> CollectiveRoutes::put(Request const& request, Body& body) {
  auto const& id = request.parameter("id");
  if (!is_identifier(id)) co_return not_an_identifier("collective id", id, "");
  Records::Name name{id, std::nullopt};
  co_return co_await launch(request, body, std::move(name));
}

awaitable<Response> CollectiveRoutes::launch(Request const& request, Body& body, Records::Name name) {
  auto const until = wait_until(request);
  if (until.has_error()) co_return until.error();
  auto const validate = validate_only(request);
  if (validate.has_error()) co_return validate.error();
  auto message = co_await read_message<api::CollectiveRequest>(body);
  if (message.has_error()) co_return message.error();
  if (validate.value()) {
    auto const record = co_await collectives_.validate(std::move(message.value()));
    if (record.has_error()) co_return record.error();
    if (record.value()->refused()) co_return *record.value()->view().error;
    co_return Response::json(200, http::encode(record.value()->view()));
  }
  auto trace = http::trace_of(request.fields);
  bool const waits = until.value() - std::chrono::steady_clock::now() >= wait_for_refusals;
  auto const mode = waits ? Execution::Mode::launch : Execution::Mode::launch_asking;
  auto const launched =
      co_await collectives_.launch(std::move(name), std::move(message.value()), std::move(trace), mode);
  if (launched.has_error()) co_return launched.error();
  auto const record = launched.value().record;
  http::only_wait(body);
  co_await collectives_.wait(record, until.value());
  if (record->refused()) co_return *record->view().error;
  auto response = shown(*record, record->ended() ? 200 : 202);
  response.fields.set("Location", "/v1/collectives/" + record->view().id);
  co_return response;
}

awaitable<Response> CollectiveRoutes::cancel(Request const& request, Body&) {
  auto const record = collectives_.records().find(request.parameter("id"));
  if (record.has_error()) co_return record.error();
  co_await collectives_.cancel(record.value());
  co_return shown(*record.value(), 200);
}

}  // namespace chorus::coordinator
