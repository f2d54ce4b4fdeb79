#include "worker/service/memory/shm_routes.hpp"

#include <algorithm>

#include "http/routing/paging.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/service/requests/json_body.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;

}  // namespace

void ShmRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/shm/system", http::Access::read,
             [this](http::Request const& request, http::Body&) { return list(request); });
  router.add(http::Method::get, "/v1/shm/system/{name}", http::Access::read,
             [this](http::Request const& request, http::Body&) { return get(request); });
  router.add(http::Method::put, "/v1/shm/system/{name}", http::Access::submit,
             [this](http::Request const& request, http::Body& body) { return put<api::RegionRequest>(request, body); });
  router.add(http::Method::delete_, "/v1/shm/system/{name}", http::Access::submit,
             [this](http::Request const& request, http::Body&) { return erase(request); });
  router.add(http::Method::get, "/v1/shm/cuda", http::Access::read,
             [this](http::Request const& request, http::Body&) { return list_on_gpus(request); });
  router.add(http::Method::get, "/v1/shm/cuda/{name}", http::Access::read,
             [this](http::Request const& request, http::Body&) { return get_on_gpu(request); });
  router.add(
      http::Method::put, "/v1/shm/cuda/{name}", http::Access::submit,
      [this](http::Request const& request, http::Body& body) { return put<api::GpuRegionRequest>(request, body); });
  router.add(http::Method::delete_, "/v1/shm/cuda/{name}", http::Access::submit,
             [this](http::Request const& request, http::Body&) { return erase_on_gpu(request); });
}

awaitable<http::Response> ShmRoutes::list(http::Request const& request) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  auto const page = http::page_of(request);
  if (!page) co_return page.error();
  api::RegionList list;
  list.items = memory_.list(page->after, page->limit + 1);
  http::cut(list, *page);
  co_return http::Response::json(200, http::encode(list));
}

awaitable<http::Response> ShmRoutes::list_on_gpus(http::Request const& request) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  auto const page = http::page_of(request);
  if (!page) co_return page.error();
  api::GpuRegionList list;
  list.items = memory_.list_on_gpus(page->after, page->limit + 1);
  http::cut(list, *page);
  co_return http::Response::json(200, http::encode(list));
}

awaitable<http::Response> ShmRoutes::get(http::Request const& request) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  auto const region = memory_.get(request.parameter("name"));
  if (!region) co_return region.error();
  co_return http::Response::json(200, http::encode(*region));
}

awaitable<http::Response> ShmRoutes::get_on_gpu(http::Request const& request) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  auto const region = memory_.get_on_gpu(request.parameter("name"));
  if (!region) co_return region.error();
  co_return http::Response::json(200, http::encode(*region));
}

template <class Asked>
awaitable<http::Response> ShmRoutes::put(http::Request const& request, http::Body& body) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  auto const& name = request.parameter("name");
  if (!is_valid_worker_id(name))
    co_return http::Problem(http::ProblemCode::bad_request, "region names are 1 to 64 letters, digits and ._-");
  auto const asked = co_await read_json<Asked>(body);
  if (!asked) co_return asked.error();
  auto const registered = co_await memory_.put(name, asked->message);
  if (!registered) co_return registered.error();
  auto response = http::Response::json(registered->is_new ? 201 : 200, http::encode(registered->region));
  if (registered->is_new) response.fields.set("Location", request.path);
  co_return response;
}

awaitable<http::Response> ShmRoutes::erase(http::Request const& request) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  if (auto const problem = memory_.erase(request.parameter("name"))) co_return *problem;
  co_return http::Response(204);
}

awaitable<http::Response> ShmRoutes::erase_on_gpu(http::Request const& request) {
  if (auto const refusal = memory_.refusal()) co_return *refusal;
  if (auto const problem = memory_.erase_on_gpu(request.parameter("name"))) co_return *problem;
  co_return http::Response(204);
}

}  // namespace chorus::service
