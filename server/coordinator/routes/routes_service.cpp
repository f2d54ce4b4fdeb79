#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "http/openapi/document.hpp"
#include "http/routing/problem_pages.hpp"
#include "http/routing/route_list.hpp"
#include "metrics/families/exposition.hpp"
#include "server/coordinator/routes/routes.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Method;
using http::Problem;
using http::ProblemCode;
using http::Request;
using http::Response;

// Returns the standing of the group in a dry run; empty if it names none.
http::Checked<std::optional<Standing>> members_for(api::PlanRequest const& request, Groups const& groups) {
  if (!request.group) return std::optional<Standing>();
  auto const group = groups.find(*request.group);
  if (group.has_error()) return group.error();
  return std::optional(groups.standing(*group.value()));
}

}  // namespace

void ServiceRoutes::add_to(http::Router& router) {
  router_ = &router;
  router.add(Method::get, "/healthz", http::Access::open, handler(this, &ServiceRoutes::live));
  router.add(Method::get, "/livez", http::Access::open, handler(this, &ServiceRoutes::live));
  router.add(Method::get, "/readyz", http::Access::open, handler(this, &ServiceRoutes::ready));
  router.add(Method::get, "/metrics", http::Access::read, handler(this, &ServiceRoutes::metrics));
  router.add(Method::get, "/v1", http::Access::read, handler(this, &ServiceRoutes::version));
  http::add_problem_pages(router);
  http::openapi::add_openapi(router);
  router.add(Method::post, "/v1/plans", http::Access::read, handler(this, &ServiceRoutes::plan));
}

awaitable<Response> ServiceRoutes::live(Request const&, Body&) { co_return Response::text(200, "ok\n"); }

awaitable<Response> ServiceRoutes::ready(Request const&, Body&) {
  if (auto failure = parts_.journal.lasting_failure(); failure && !parts_.draining()) co_return std::move(*failure);
  if (auto const failure = parts_.journal.failure(); failure && !parts_.draining())
    co_return Response::text(200, "ready, but nothing can be launched: " + failure->detail + "\n");
  if (!parts_.draining()) co_return Response::text(200, "ready\n");
  Problem problem(ProblemCode::unavailable, "the coordinator is stopping");
  problem.retry_after_s = 5;
  co_return problem;
}

awaitable<Response> ServiceRoutes::metrics(Request const&, Body&) {
  co_return Response::text(200, parts_.metrics(), std::string(chorus::metrics::content_type));
}

awaitable<Response> ServiceRoutes::version(Request const&, Body&) {
  boost::json::object answer;
  answer["name"] = "chorus-coordinator";
  auto const build = chorus::metrics::this_build();
  answer["version"] = build.version;
  auto& fields = answer["build"].emplace_object();
  for (auto const& [name, value] : chorus::metrics::fields_of(build)) fields[name] = value;
  answer["authentication"] = parts_.security.authenticates() ? "token" : "none";
  answer["extensions"] =
      boost::json::array{"workers", "groups", "collectives", "events", "plans", "simulations", "parameters", "status"};
  answer["routes"] = http::routes_json(*router_);
  co_return Response::json(200, boost::json::serialize(answer));
}

awaitable<Response> ServiceRoutes::plan(Request const&, Body& body) {
  auto message = co_await read_message<api::PlanRequest>(body);
  if (message.has_error()) co_return message.error();
  auto of_group = members_for(message.value(), parts_.cluster.groups());
  if (of_group.has_error()) co_return of_group.error();
  auto const answer = co_await parts_.planner.preview(std::move(message.value()), std::move(of_group.value()));
  if (answer.has_error()) co_return answer.error();
  co_return Response::json(200, http::encode(answer.value()));
}

}  // namespace chorus::coordinator
