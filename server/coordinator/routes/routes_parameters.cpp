#include "http/routing/paging.hpp"
#include "server/coordinator/routes/routes.hpp"
#include "server/coordinator/text/duration.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Method;
using http::Problem;
using http::ProblemCode;
using http::Request;
using http::Response;

}  // namespace

void ParameterRoutes::add_to(http::Router& router) {
  router.add(Method::get, "/v1/parameters", http::Access::read, handler(this, &ParameterRoutes::list));
  router.add(Method::get, "/v1/parameters/{name}", http::Access::read, handler(this, &ParameterRoutes::get));
  router.add(Method::put, "/v1/parameters/{name}", http::Access::submit, handler(this, &ParameterRoutes::put));
  router.add(Method::delete_, "/v1/parameters/{name}", http::Access::submit, handler(this, &ParameterRoutes::erase));
  router.add(Method::post, "/v1/parameters/{name}/give-up", http::Access::submit,
             handler(this, &ParameterRoutes::give_up));
  router.add(Method::post, "/v1/checkpoints", http::Access::submit,
             once_.wrap(handler(this, &ParameterRoutes::checkpoint)));
  router.add(Method::post, "/v1/workers/{id}/handover", http::Access::join, handler(this, &ParameterRoutes::hand_over));
}

// Handles ?suspect=w1&incarnation=..: the caller could not reach this worker, and another placement may be needed. With
// lost_shard=0 the caller is this worker itself, which does not have the shard any more.
void ParameterRoutes::heed_suspicion(Request const& request, std::string const& parameter) {
  auto const worker = request.query_value("suspect"), incarnation = request.query_value("incarnation");
  if (!worker || !incarnation || !request.caller.may(http::Access::join)) return;
  auto const lost = request.query_number("lost_shard", UINT32_MAX);
  if (lost && *lost && !parameter.empty())
    directory_.shard_lost(parameter, static_cast<std::uint32_t>(**lost), std::string(*worker),
                          std::string(*incarnation));
  else
    cluster_.suspect(std::string(*worker), std::string(*incarnation));
}

awaitable<Response> ParameterRoutes::list(Request const& request, Body&) {
  heed_suspicion(request, "");
  auto const page = http::page_of(request);
  if (page.has_error()) co_return page.error();
  auto const show = [this](ParameterDirectory::RecordPtr const& record) { return directory_.show(*record); };
  co_return Response::json(200,
                           http::encode(http::page_through<api::ParameterList>(directory_.all(), page.value(), show)));
}

awaitable<Response> ParameterRoutes::get(Request const& request, Body&) {
  heed_suspicion(request, request.parameter("name"));
  auto const parameter = directory_.find(request.parameter("name"));
  if (parameter.has_error()) co_return parameter.error();
  co_return Response::json(200, http::encode(parameter.value()));
}

awaitable<Response> ParameterRoutes::put(Request const& request, Body& body) {
  auto message = co_await read_message<api::ParameterRequest>(body);
  if (message.has_error()) co_return message.error();
  auto const made = co_await directory_.put(request.parameter("name"), std::move(message.value()));
  if (made.has_error()) co_return made.error();
  auto response = Response::json(made.value().created ? 201 : 200, http::encode(made.value().parameter));
  response.fields.set("Location", api::parameter_path(made.value().parameter.name));
  co_return response;
}

awaitable<Response> ParameterRoutes::erase(Request const& request, Body&) {
  auto const problem = co_await directory_.erase(request.parameter("name"));
  if (problem) co_return *problem;
  co_return Response(204);
}

awaitable<Response> ParameterRoutes::give_up(Request const& request, Body&) {
  auto const parameter = co_await directory_.give_up(request.parameter("name"));
  if (parameter.has_error()) co_return parameter.error();
  co_return Response::json(200, http::encode(parameter.value()));
}

awaitable<Response> ParameterRoutes::checkpoint(Request const&, Body& body) {
  auto message = co_await read_message<api::CheckpointRequest>(body);
  if (message.has_error()) co_return message.error();
  auto const made = co_await checkpoints_.make(std::move(message.value()));
  if (made.has_error()) co_return made.error();
  co_return Response::json(201, http::encode(made.value()));
}

// Called by a worker that is about to leave. Answers when the worker has no shard any more, at the end of ?wait=, or
// when no other worker can take the shards.
awaitable<Response> ParameterRoutes::hand_over(Request const& request, Body&) {
  auto const incarnation = request.query_value("incarnation");
  auto const wait = parse_duration(request.query_value("wait").value_or("30s"));
  if (wait.has_error()) co_return Problem(ProblemCode::bad_request, "query parameter wait: " + wait.error().detail);
  auto const worker = cluster_.find(request.parameter("id"));
  if (worker.has_error()) co_return worker.error();
  if (!request.caller.may(http::Access::admin))
    if (auto const problem = check_is_own(cluster_, worker.value().id, request.caller)) co_return *problem;
  if (incarnation && worker.value().incarnation != *incarnation)
    co_return Problem(ProblemCode::epoch_fenced, "worker '" + worker.value().id + "' has another incarnation");
  auto const left = co_await directory_.hand_over(worker.value().id, worker.value().incarnation,
                                                  std::chrono::steady_clock::now() + wait.value());
  if (left.has_error()) co_return left.error();
  co_return Response::json(200, http::encode(api::HandOverAnswer{left.value()}));
}

}  // namespace chorus::coordinator
