#include "server/coordinator/high_availability/standby.hpp"

#include "metrics/families/exposition.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using http::Access;
using http::Method;

Standby::Standby(asio::any_io_executor executor, Election const& election, StandbyOptions options)
    : election_(election),
      memory_(std::move(options.memory)),
      scraped_(std::move(options.scraped)),
      metrics_(metrics::this_build(), options.process_start_seconds, std::move(options.logged)),
      security_(options.security, {}, [this](std::string_view reason) { metrics_.refused(reason); }),
      server_(
          executor, router_, options.limits,
          [this](http::Exchange const& exchange) {
            metrics_.request(http::name(exchange.method), exchange.route, exchange.status,
                             std::chrono::duration<double>(exchange.duration).count());
          },
          security_.door()),
      lag_(std::move(executor), [this](double seconds) { metrics_.loop_lag(seconds); }) {
  auto const bound = [this](auto method) {
    return [this, method](http::Request const& request, http::Body& body) { return (this->*method)(request, body); };
  };
  router_.add(Method::get, "/livez", Access::open, bound(&Standby::alive));
  for (auto const* path : {"/readyz", "/healthz"}) router_.add(Method::get, path, Access::open, bound(&Standby::ready));
  router_.add(Method::get, "/metrics", Access::read, bound(&Standby::show_metrics));
  for (auto const method : {Method::get, Method::put, Method::post, Method::delete_, Method::options})
    for (auto const* path : {"/", "/{path...}"}) router_.add(method, path, Access::open, bound(&Standby::lead_on));
}

http::Problem Standby::without_leader() const {
  http::Problem problem(http::ProblemCode::unavailable, "no coordinator leads at present");
  if (!election_.trouble().empty()) problem.detail += ": " + election_.trouble();
  problem.retry_after_s = 1;
  return problem;
}

asio::awaitable<http::Response> Standby::alive(http::Request const& /*request*/, http::Body& /*body*/) {
  co_return http::Response::text(200, "ok\n");
}

asio::awaitable<http::Response> Standby::ready(http::Request const& /*request*/, http::Body& /*body*/) {
  auto const leader = election_.other_leader();
  if (!leader) co_return without_leader();
  http::Problem problem(http::ProblemCode::unavailable, "a standby; " + *leader + " leads");
  co_return problem;
}

asio::awaitable<http::Response> Standby::show_metrics(http::Request const& /*request*/, http::Body& /*body*/) {
  metrics::ServiceState state;
  state.http_connections = server_.open_connections();
  state.http_in_flight = server_.requests_in_flight();
  state.authenticates = security_.authenticates();
  state.certificate_expiry_seconds = security_.certificate_ends_seconds();
  state.memory = {memory_.bytes, http::memory_used(memory_)};
  co_return http::Response::text(200, metrics_.text(state, scraped_()), std::string(metrics::content_type));
}

asio::awaitable<http::Response> Standby::lead_on(http::Request const& request, http::Body& /*body*/) {
  auto const leader = election_.other_leader();
  if (!leader) co_return without_leader();
  http::Response response(http::Problem(http::ProblemCode::not_leader, "this is a standby; " + *leader + " leads"));
  response.fields.set("Location", *leader + request.target);
  response.fields.set("Cache-Control", "no-store");
  co_return response;
}

asio::awaitable<void> Standby::stop() {
  co_await server_.stop();
  co_await lag_.stop();
}

Result<std::uint16_t> Standby::start(std::string const& host, std::uint16_t port) {
  if (auto const opened = security_.open(); !opened) return opened.error();
  auto const listening = server_.listen(host, port);
  if (listening) lag_.start();
  return listening;
}

}  // namespace chorus::coordinator
