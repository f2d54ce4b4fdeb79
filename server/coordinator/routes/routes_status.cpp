#include "server/coordinator/routes/routes_status.hpp"

#include "metrics/build/build.hpp"
#include "server/coordinator/routes/routes.hpp"
#include "server/coordinator/text/wall_clock.hpp"
#include "server/ui/assets.hpp"
#include "server/ui/page.hpp"

namespace chorus::coordinator {
namespace {

using boost::asio::awaitable;
using http::Body;
using http::Method;
using http::Request;
using http::Response;
using Clock = std::chrono::steady_clock;

constexpr std::size_t collectives_judged = 100;

api::StoreStatus status_of_store(Journal const& journal) {
  api::StoreStatus status;
  status.kind = "none";
  if (!journal.on_disk()) return status;
  auto identity = journal.identity();
  auto const counts = journal.counts();
  status.kind = std::move(identity.kind);
  status.place = std::move(identity.place);
  if (!identity.cluster.empty()) status.cluster = std::move(identity.cluster);
  status.bytes = counts.bytes;
  status.last_write_s = counts.last_seconds;
  if (auto const failure = journal.failure()) status.failure = failure->detail;
  return status;
}

bool serves_traces(http::Router const& router) {
  Request request;
  request.path = request.target = "/v1/collectives/any/trace";
  return router.match(request).handler != nullptr;
}

}  // namespace

StatusRoutes::StatusRoutes(Parts parts)
    : parts_(std::move(parts)), begun_(Clock::now()), started_at_(rfc3339(wall_seconds())) {}

void StatusRoutes::add_to(http::Router& router) {
  router_ = &router;
  router.add(Method::get, "/", http::Access::open, handler(this, &StatusRoutes::page));
  ui::add_assets(router);
  router.add(Method::get, "/v1/status", http::Access::read, handler(this, &StatusRoutes::status));
  router.add(Method::get, "/v1/links/traffic", http::Access::read, handler(this, &StatusRoutes::traffic));
  router.add(Method::get, "/v1/parameters/{name}/shards", http::Access::read, handler(this, &StatusRoutes::shards));
  router.add(Method::post, "/v1/demo", http::Access::submit, parts_.once.wrap(handler(this, &StatusRoutes::launch)));
}

Facts StatusRoutes::facts() const {
  Facts facts;
  for (auto const& [id, worker] : parts_.cluster.membership().all())
    facts.workers.push_back(parts_.cluster.show(worker));
  for (auto const& [name, group] : parts_.cluster.groups().all()) facts.groups.push_back(group);
  if (auto list = parts_.collectives.records().list(collectives_judged, ""); list.has_value())
    facts.collectives = std::move(list.value().items);
  for (auto const& [name, record] : parts_.parameters.all())
    if (record->is_established) facts.parameters.push_back(parts_.parameters.show(*record));
  if (auto const failure = parts_.journal.failure()) facts.journal_failure = failure->detail;
  facts.draining = parts_.draining();
  facts.is_unprotected = parts_.security.is_unprotected();
  return facts;
}

api::LeadStatus StatusRoutes::lead_status() const {
  api::LeadStatus status;
  if (!parts_.url.empty()) status.url = parts_.url;
  status.since = started_at_;
  status.store = status_of_store(parts_.journal);
  return status;
}

api::CoordinatorStatus StatusRoutes::status_of(Facts const& facts) const {
  api::CoordinatorStatus status;
  status.verdict = judge(facts);
  status.version = metrics::this_build().version;
  status.started_at = started_at_;
  status.uptime_s = std::chrono::duration<double>(Clock::now() - begun_).count();
  status.last_event = parts_.events.newest();
  status.lease_ms = static_cast<std::uint32_t>(parts_.cluster.membership().lease().count());
  status.workers = facts.workers.size();
  status.ready = parts_.cluster.membership().ready_count();
  status.groups = facts.groups.size();
  for (auto const& group : facts.groups) status.degraded += group->state == "ready" ? 0 : 1;
  status.running = parts_.collectives.records().running();
  status.draining = facts.draining;
  status.journal = parts_.journal.on_disk();
  status.traces = serves_traces(*router_);
  status.settings = parts_.settings;
  status.coordinator = lead_status();
  return status;
}

// Whoever may not read gets the page without anything in it but why: the page asks for a token.
awaitable<Response> StatusRoutes::page(Request const& request, Body&) {
  bool const is_stranger = !request.caller.may(http::Access::read);
  auto const now = is_stranger ? Facts() : facts();
  auto const verdict = is_stranger ? verdict_for_strangers() : judge(now);
  auto response = Response::text(200, ui::page(verdict, metrics::this_build().version, now.workers, now.groups),
                                 "text/html; charset=utf-8");
  ui::set_security(response.fields);
  response.fields.set("Cache-Control", "no-store");
  co_return response;
}

awaitable<Response> StatusRoutes::status(Request const&, Body&) {
  co_return Response::json(200, http::encode(status_of(facts())));
}

awaitable<Response> StatusRoutes::traffic(Request const& request, Body&) {
  std::optional<std::string> group;
  if (auto const given = request.query_value("group")) group = *given;
  auto const traffic = co_await parts_.survey.traffic(std::move(group));
  if (traffic.has_error()) co_return traffic.error();
  co_return Response::json(200, http::encode(traffic.value()));
}

awaitable<Response> StatusRoutes::shards(Request const& request, Body&) {
  auto parameter = parts_.parameters.find(request.parameter("name"));
  if (parameter.has_error()) co_return parameter.error();
  auto const shards = co_await parts_.survey.shards(std::move(parameter.value()));
  co_return Response::json(200, http::encode(shards));
}

awaitable<Response> StatusRoutes::launch(Request const&, Body& body) {
  auto message = co_await read_message<api::DemoRequest>(body);
  if (message.has_error()) co_return message.error();
  auto const launched = co_await parts_.demo.launch(std::move(message.value()));
  if (launched.has_error()) co_return launched.error();
  auto const& record = *launched.value();
  if (record.refused()) co_return *record.view().error;
  auto response = Response::json(202, http::encode(record.view()));
  response.fields.set("Location", "/v1/collectives/" + record.view().id);
  response.fields.set("Retry-After", "1");
  co_return response;
}

}  // namespace chorus::coordinator
