#include "worker/service/parameters/values/parameter_routes.hpp"

#include <utility>

#include "http/json/json.hpp"
#include "http/routing/paging.hpp"

namespace chorus::service {

using boost::asio::awaitable;
using parameters::PushKind;

ParameterRoutes::ParameterRoutes(boost::asio::any_io_executor executor, parameters::ShardBook& book,
                                 parameters::Access& access, tensors::Pool& pool, Helper& helper, std::string self,
                                 ParameterCounts counts)
    : book_(book),
      counts_(std::move(counts)),
      targets_(book, access),
      reader_(pool, helper),
      gateway_(access, pool, helper, std::move(self)),
      pulls_({executor, book, targets_, access, pool, helper, reader_, gateway_, counts_}),
      pushes_({executor, book, targets_, access, pool, helper, reader_, gateway_, counts_}) {}

void ParameterRoutes::add_to(http::Router& router) {
  using http::Method;
  auto const push = [this](PushKind kind, bool pulls) {
    return [this, kind, pulls](http::Request const& request, http::Body& body) {
      return pushes_.push(request, body, kind, pulls);
    };
  };
  router.add(Method::get, "/v1/parameters", http::Access::read,
             [this](http::Request const& request, http::Body&) { return list(request); });
  router.add(Method::get, "/v1/parameters/{name}", http::Access::read,
             [this](http::Request const& request, http::Body&) { return describe(request); });
  router.add(Method::get, "/v1/parameters/{name}/value", http::Access::read,
             [this](http::Request const& request, http::Body&) { return pulls_.pull(request); });
  router.add(Method::put, "/v1/parameters/{name}/value", http::Access::submit, push(PushKind::value, false));
  router.add(Method::post, "/v1/parameters/{name}/gradient", http::Access::submit, push(PushKind::gradient, false));
  router.add(Method::post, "/v1/parameters/{name}/push_pull", http::Access::submit, push(PushKind::gradient, true));
  router.add(Method::post, "/v1/parameters/{name}/rows", http::Access::read,
             [this](http::Request const& request, http::Body& body) { return pulls_.pull_rows(request, body); });
  router.add(Method::post, "/v1/parameters/{name}/rows/gradient", http::Access::submit, push(PushKind::rows, false));
}

awaitable<http::Response> ParameterRoutes::list(http::Request const& request) {
  auto const page = http::page_of(request);
  if (!page) co_return page.error();
  co_return http::Response::json(200, http::encode(book_.list(page->after, page->limit)));
}

awaitable<http::Response> ParameterRoutes::describe(http::Request const& request) {
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const deadline = deadline_of(request, std::chrono::steady_clock::now());
  if (!deadline) co_return deadline.error();
  auto const placement = co_await targets_.newest(*name, *deadline);
  if (!placement) co_return placement.error();
  co_return http::Response::json(200, http::encode((*placement)->parameter));
}

}  // namespace chorus::service
