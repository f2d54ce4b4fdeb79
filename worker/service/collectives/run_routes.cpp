#include "worker/service/collectives/run_routes.hpp"

#include <charconv>

#include "http/message/trace_context.hpp"
#include "worker/service/collectives/groups/epoch_members.hpp"
#include "worker/service/requests/json_body.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;

http::Checked<std::uint64_t> run_number(http::Request const& request) {
  auto const& text = request.parameter("run");
  std::uint64_t run = 0;
  auto const* const end = text.data() + text.size();
  auto const [stop, failure] = std::from_chars(text.data(), end, run);
  if (failure == std::errc() && stop == end) return run;
  return http::Problem(http::ProblemCode::bad_request, "a run is a number, not \"" + text.substr(0, 80) + '"');
}

}  // namespace

void RunRoutes::add_to(http::Router& router) {
  router.add(http::Method::put, "/v1/runs/{run}", http::Access::join,
             [this](http::Request const& request, http::Body& body) { return put(request, body); });
  router.add(http::Method::get, "/v1/runs/{run}", http::Access::join,
             [this](http::Request const& request, http::Body&) { return get(request); });
  router.add(http::Method::post, "/v1/runs/{run}/commit", http::Access::join,
             [this](http::Request const& request, http::Body&) { return commit(request); });
  router.add(http::Method::delete_, "/v1/runs/{run}", http::Access::join,
             [this](http::Request const& request, http::Body&) { return erase(request); });
}

awaitable<http::Response> RunRoutes::put(http::Request const& request, http::Body& body) {
  auto const run = run_number(request);
  if (!run) co_return run.error();
  auto asked = co_await read_json<api::RunRequest>(body);
  if (!asked) co_return asked.error();
  if (asked->message.run != *run)
    co_return invalid_field("/run",
                            "is " + std::to_string(asked->message.run) + ", the path says " + std::to_string(*run));
  bool const is_unnamed = asked->message.members.empty();
  auto const epoch = is_unnamed ? groups_.epoch_of(asked->message.group) : nullptr;
  if (is_unnamed)
    if (auto problem = name_members(asked->message, epoch.get())) co_return *problem;
  auto order = to_order(asked->message, identity_, std::chrono::steady_clock::now());
  if (!order) co_return order.error();
  if (is_unnamed) order->spec = positioned(std::move(order->spec), epoch->assignment().group);
  if (auto trace = http::trace_of(request.fields)) order->trace_id = std::move(trace->trace_id);
  if (auto problem = groups_.check_epoch(order->group, order->epoch)) co_return *problem;
  auto const report = co_await runs_.put(std::move(*order), identity_.id, std::move(asked->text));
  if (!report) co_return report.error();
  co_return http::Response::json(200, http::encode(*report));
}

awaitable<http::Response> RunRoutes::get(http::Request const& request) {
  auto const run = run_number(request);
  if (!run) co_return run.error();
  if (auto const status = runs_.status(*run)) co_return http::Response::json(200, http::encode(*status));
  co_return http::Problem(http::ProblemCode::unknown_run, "run " + std::to_string(*run) + " is not known here");
}

awaitable<http::Response> RunRoutes::commit(http::Request const& request) {
  auto const run = run_number(request);
  if (!run) co_return run.error();
  auto const version = co_await runs_.commit(*run);
  if (!version) co_return version.error();
  co_return http::Response::json(200, http::encode(api::CommitAnswer{*version}));
}

awaitable<http::Response> RunRoutes::erase(http::Request const& request) {
  auto const run = run_number(request);
  if (!run) co_return run.error();
  if (auto const problem = runs_.drop(*run)) co_return *problem;
  co_return http::Response(204);
}

}  // namespace chorus::service
