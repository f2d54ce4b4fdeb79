#include <charconv>

#include "http/routing/paging.hpp"
#include "server/coordinator/routes/routes.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Method;
using http::Request;
using http::Response;

}  // namespace

std::optional<http::Problem> check_is_own(Cluster const& cluster, std::string_view id, http::Caller const& caller) {
  auto const* const worker = cluster.membership().find(id);
  return worker == nullptr ? std::nullopt : http::check_identity(caller, worker->url);
}

void WorkerRoutes::add_to(http::Router& router) {
  router.add(Method::get, "/v1/links", http::Access::read, handler(this, &WorkerRoutes::links));
  router.add(Method::get, "/v1/workers", http::Access::read, handler(this, &WorkerRoutes::list));
  router.add(Method::post, "/v1/workers", http::Access::join, handler(this, &WorkerRoutes::join));
  router.add(Method::get, "/v1/workers/{id}", http::Access::read, handler(this, &WorkerRoutes::get));
  router.add(Method::delete_, "/v1/workers/{id}", http::Access::admin, handler(this, &WorkerRoutes::take_out));
  router.add(Method::post, "/v1/workers/{id}/probe", http::Access::read, handler(this, &WorkerRoutes::probe));
  router.add(Method::put, "/v1/workers/{id}/lease", http::Access::join, handler(this, &WorkerRoutes::renew));
  router.add(Method::delete_, "/v1/workers/{id}/lease", http::Access::join, handler(this, &WorkerRoutes::leave));
}

awaitable<Response> WorkerRoutes::list(Request const& request, Body&) {
  auto const page = http::page_of(request);
  if (page.has_error()) co_return page.error();
  auto const show = [this](Worker const& worker) { return cluster_.show(worker); };
  co_return Response::json(
      200, http::encode(http::page_through<api::WorkerList>(cluster_.membership().all(), page.value(), show)));
}

awaitable<Response> WorkerRoutes::links(Request const& request, Body&) {
  if (auto const group = request.query_value("group")) {
    auto links = cluster_.links_of(*group);
    if (links.has_error()) co_return links.error();
    co_return Response::json(200, http::encode(api::MeasuredLinkList{std::move(links.value()), std::nullopt}));
  }
  co_return Response::json(200, http::encode(api::MeasuredLinkList{cluster_.links(), std::nullopt}));
}

awaitable<Response> WorkerRoutes::join(Request const& request, Body& body) {
  auto message = co_await read_message<api::JoinRequest>(body, http::UnknownFields::ignore);
  if (message.has_error()) co_return message.error();
  if (auto const problem = http::check_identity(request.caller, message.value().url)) co_return *problem;
  auto const joined = co_await cluster_.join(std::move(message.value()));
  if (joined.has_error()) co_return joined.error();
  auto response = Response::json(joined.value().created ? 201 : 200, http::encode(joined.value().worker));
  response.fields.set("Location", "/v1/workers/" + joined.value().worker.id);
  co_return response;
}

awaitable<Response> WorkerRoutes::get(Request const& request, Body&) {
  auto const worker = cluster_.find(request.parameter("id"));
  if (worker.has_error()) co_return worker.error();
  co_return Response::json(200, http::encode(worker.value()));
}

awaitable<Response> WorkerRoutes::leave(Request const& request, Body&) {
  auto const incarnation = request.query_value("incarnation");
  if (!incarnation)
    co_return http::Problem(http::ProblemCode::bad_request,
                            "whose lease? ?incarnation= says it; DELETE /v1/workers/{id} takes a worker out");
  auto const& id = request.parameter("id");
  if (auto const problem = check_is_own(cluster_, id, request.caller)) co_return *problem;
  if (auto const problem = co_await cluster_.leave(id, std::string(*incarnation))) co_return *problem;
  co_return Response(204);
}

awaitable<Response> WorkerRoutes::take_out(Request const& request, Body&) {
  std::optional<std::string> incarnation;
  if (auto const given = request.query_value("incarnation")) incarnation = *given;
  if (auto const problem = co_await cluster_.leave(request.parameter("id"), std::move(incarnation))) co_return *problem;
  co_return Response(204);
}

awaitable<Response> WorkerRoutes::probe(Request const& request, Body&) {
  auto const reachability = co_await cluster_.reach(request.parameter("id"));
  if (reachability.has_error()) co_return reachability.error();
  co_return Response::json(200, http::encode(reachability.value()));
}

awaitable<Response> WorkerRoutes::renew(Request const& request, Body& body) {
  auto const message = co_await read_message<api::LeaseRequest>(body, http::UnknownFields::ignore);
  if (message.has_error()) co_return message.error();
  if (auto const problem = check_is_own(cluster_, request.parameter("id"), request.caller)) co_return *problem;
  auto const lease = cluster_.renew(request.parameter("id"), message.value());
  if (lease.has_error()) co_return lease.error();
  connections_.renewed(request.remote, {request.parameter("id"), message.value().incarnation});
  co_return Response::json(200, http::encode(lease.value()));
}

void GroupRoutes::add_to(http::Router& router) {
  router.add(Method::get, "/v1/groups", http::Access::read, handler(this, &GroupRoutes::list));
  router.add(Method::get, "/v1/groups/{name}", http::Access::read, handler(this, &GroupRoutes::get));
  router.add(Method::get, "/v1/groups/{name}/members/{rank}", http::Access::read, handler(this, &GroupRoutes::member));
  router.add(Method::put, "/v1/groups/{name}", http::Access::submit, once_.wrap(handler(this, &GroupRoutes::put)));
  router.add(Method::delete_, "/v1/groups/{name}", http::Access::submit, handler(this, &GroupRoutes::erase));
}

awaitable<Response> GroupRoutes::list(Request const& request, Body&) {
  auto const page = http::page_of(request);
  if (page.has_error()) co_return page.error();
  auto const show = [this](GroupSnapshot const& group) { return cluster_.show(*group); };
  co_return Response::json(
      200, http::encode(http::page_through<api::GroupList>(cluster_.groups().all(), page.value(), show)));
}

awaitable<Response> GroupRoutes::get(Request const& request, Body&) {
  auto const group = cluster_.groups().find(request.parameter("name"));
  if (group.has_error()) co_return group.error();
  co_return Response::json(200, http::encode(cluster_.show(*group.value())));
}

awaitable<Response> GroupRoutes::member(Request const& request, Body&) {
  auto const& text = request.parameter("rank");
  std::uint32_t rank = 0;
  auto const* const end = text.data() + text.size();
  auto const [stop, failure] = std::from_chars(text.data(), end, rank);
  if (failure != std::errc() || stop != end)
    co_return http::Problem(http::ProblemCode::bad_request, "a rank is a number, not \"" + text.substr(0, 80) + '"');
  auto const member = co_await cluster_.member(request.parameter("name"), rank);
  if (member.has_error()) co_return member.error();
  co_return Response::json(200, http::encode(member.value()));
}

awaitable<Response> GroupRoutes::put(Request const& request, Body& body) {
  auto message = co_await read_message<api::GroupRequest>(body);
  if (message.has_error()) co_return message.error();
  auto const group = co_await cluster_.put_group(request.parameter("name"), std::move(message.value()));
  if (group.has_error()) co_return group.error();
  auto response = Response::json(group.value().epoch == 1 ? 201 : 200, http::encode(cluster_.show(group.value())));
  response.fields.set("Location", "/v1/groups/" + group.value().name);
  co_return response;
}

awaitable<Response> GroupRoutes::erase(Request const& request, Body&) {
  if (auto const problem = co_await cluster_.erase_group(request.parameter("name"))) co_return *problem;
  co_return Response(204);
}

}  // namespace chorus::coordinator
