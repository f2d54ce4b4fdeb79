#include "worker/service/health_routes.hpp"

#include <boost/json.hpp>

#include "http/api/cluster/membership.hpp"
#include "http/openapi/document.hpp"
#include "http/routing/problem_pages.hpp"
#include "http/routing/route_list.hpp"
#include "metrics/families/exposition.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;

http::Response json(boost::json::object const& object) {
  return http::Response::json(200, boost::json::serialize(object) + "\n");
}

boost::json::array described(devices::Gpus const& gpus) {
  boost::json::array all;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto const& gpu = gpus[i].gpu().info();
    boost::json::object one{{"device", devices::device_name(gpu.index)},
                            {"name", gpu.name},
                            {"uuid", gpu.uuid},
                            {"pci_address", gpu.pci_address},
                            {"memory_bytes", gpu.memory_bytes}};
    if (auto const why = gpus[i].lost()) one["lost"] = *why;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

void HealthRoutes::add_to(http::Router& router) {
  using enum http::Method;
  router_ = &router;
  router.add(get, "/", http::Access::read, [this](http::Request const&, http::Body&) { return hello(); });
  router.add(get, "/healthz", http::Access::open, [this](http::Request const&, http::Body&) { return alive(); });
  router.add(get, "/livez", http::Access::open, [this](http::Request const&, http::Body&) { return alive(); });
  router.add(get, "/readyz", http::Access::open, [this](http::Request const&, http::Body&) { return ready(); });
  router.add(get, "/metrics", http::Access::read, [this](http::Request const&, http::Body&) { return metrics(); });
  router.add(get, "/v1", http::Access::read, [this](http::Request const&, http::Body&) { return about(); });
  http::add_problem_pages(router);
  http::openapi::add_openapi(router);
}

awaitable<http::Response> HealthRoutes::alive() { co_return http::Response::text(200, "ok\n"); }

awaitable<http::Response> HealthRoutes::ready() {
  auto why = sources_.unready();
  if (!why) {
    auto const complaint = sources_.complaint();
    co_return http::Response::text(200, complaint ? "ready, but " + *complaint + "\n" : "ready\n");
  }
  http::Problem problem(http::ProblemCode::unavailable, std::move(*why));
  problem.retry_after_s = 1;
  co_return problem;
}

awaitable<http::Response> HealthRoutes::metrics() {
  co_return http::Response::text(200, sources_.metrics(), std::string(metrics::content_type));
}

awaitable<http::Response> HealthRoutes::hello() {
  co_return json({{"name", "chorus-worker"},
                  {"worker", identity_.id},
                  {"version", build_.version},
                  {"see", {"/v1", "/v1/tensors", "/v1/groups", "/v1/links", "/v1/flight", "/readyz", "/metrics"}}});
}

awaitable<http::Response> HealthRoutes::about() {
  boost::json::object build;
  for (auto const& [name, value] : metrics::fields_of(build_)) build[name] = value;
  co_return json({{"name", "chorus-worker"},
                  {"version", build_.version},
                  {"build", std::move(build)},
                  {"worker", identity_.id},
                  {"incarnation", api::to_hex(identity_.incarnation)},
                  {"url", identity_.url},
                  {"extensions", {"tensors", "runs", "groups", "flight", "link"}},
                  {"gpus", described(gpus_)},
                  {"routes", http::routes_json(*router_)}});
}

}  // namespace chorus::service
