#include "worker/service/collectives/group_routes.hpp"

#include "http/message/idempotency_key.hpp"
#include "http/message/trace_context.hpp"
#include "http/routing/paging.hpp"
#include "worker/service/requests/json_body.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;

}  // namespace

void GroupRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/groups", http::Access::read,
             [this](http::Request const& request, http::Body&) { return list(request); });
  router.add(http::Method::get, "/v1/groups/{name}", http::Access::read,
             [this](http::Request const& request, http::Body&) { return get(request); });
  router.add(http::Method::put, "/v1/groups/{name}", http::Access::join,
             [this](http::Request const& request, http::Body& body) { return put(request, body); });
  router.add(http::Method::post, "/v1/groups/{name}/{op}", http::Access::submit,
             [this](http::Request const& request, http::Body& body) { return call(request, body); });
}

awaitable<http::Response> GroupRoutes::list(http::Request const& request) {
  auto const page = http::page_of(request);
  if (!page) co_return page.error();
  api::GroupList list;
  list.items = groups_.list(page->after, page->limit + 1);
  http::cut(list, *page);
  co_return http::Response::json(200, http::encode(list));
}

awaitable<http::Response> GroupRoutes::get(http::Request const& request) {
  auto const group = groups_.get(request.parameter("name"));
  if (!group) co_return group.error();
  co_return http::Response::json(200, http::encode(*group));
}

awaitable<http::Response> GroupRoutes::put(http::Request const& request, http::Body& body) {
  auto const assignment = co_await read_json<api::GroupAssignment>(body, http::UnknownFields::ignore);
  if (!assignment) co_return assignment.error();
  auto const& name = request.parameter("name");
  if (assignment->message.group.name != name)
    co_return invalid_field("/group/name", "is not " + name.substr(0, 80) + ", as the path says");
  if (auto const problem = groups_.assign(assignment->message)) co_return *problem;
  co_return http::Response(204);
}

awaitable<http::Response> GroupRoutes::call(http::Request const& request, http::Body& body) {
  auto asked = co_await read_json<api::LocalCall>(body);
  if (!asked) co_return asked.error();
  auto key = http::idempotency_key(request.fields);
  if (!key) co_return key.error();
  // A variable: GCC 12 destroys an aggregate temporary of a co_await expression twice.
  GroupRegistry::Origin origin{std::move(*key), &body, ""};
  if (auto trace = http::trace_of(request.fields)) origin.trace_id = std::move(trace->trace_id);
  auto const report = co_await groups_.call(request.parameter("name"), request.parameter("op"),
                                            std::move(asked->message), std::move(origin));
  if (!report) co_return report.error();
  co_return http::Response::json(200, http::encode(*report));
}

}  // namespace chorus::service
