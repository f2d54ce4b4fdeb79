#include "server/coordinator/observability/trace_routes.hpp"

#include <optional>
#include <utility>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{5};
constexpr int clock_readings = 5;  // the one of least duration is used

double now_us() { return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count(); }

}  // namespace

struct TraceRoutes::Gathering {
  explicit Gathering(asio::any_io_executor executor) : gathered(std::move(executor)) {}
  std::vector<RankTrace> ranks;
  std::size_t pending = 0;
  http::Condition gathered;
};

void TraceRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/collectives/{id}/trace", http::Access::read,
             [this](http::Request const& request, http::Body&) { return get(request); });
}

asio::awaitable<void> TraceRoutes::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

asio::awaitable<http::Response> TraceRoutes::get(http::Request const& request) {
  auto const found = collectives_.records().find(request.parameter("id"));
  if (found.has_error()) co_return found.error();
  auto const record = found.value();
  auto const& view = record->view();
  if (view.ranks.empty())
    co_return http::Problem(http::ProblemCode::unknown_run,
                            "collective " + view.id + " was not launched: no rank has run");
  auto const gathering = std::make_shared<Gathering>(executor_);
  for (auto const& rank : view.ranks) gathering->ranks.push_back({rank.rank, rank.worker, std::nullopt, {}, ""});
  for (std::size_t i = 0; i < gathering->ranks.size(); ++i) {
    auto const worker = cluster_.find(gathering->ranks[i].worker);
    if (worker.has_error()) {
      gathering->ranks[i].why = worker.error().detail;
      continue;
    }
    ++gathering->pending;
    tasks_.spawn("flight of " + worker.value().id, gather(gathering, i, worker.value().url, view.run));
  }
  while (gathering->pending != 0) co_await gathering->gathered.wait_until(TimePoint::max());
  co_return http::Response::json(200, chrome_trace(view, gathering->ranks));
}

asio::awaitable<void> TraceRoutes::gather(std::shared_ptr<Gathering> gathering, std::size_t index, std::string url,
                                          std::uint64_t run) {
  auto& rank = gathering->ranks[index];
  auto const deadline = Clock::now() + patience;
  std::optional<ClockOffset> best;
  for (int reading = 0; reading < clock_readings; ++reading) {
    auto const asked_us = now_us();
    auto const said = co_await workers_.read_clock(url, deadline);
    auto const answered_us = now_us();
    if (said.has_error() || said->has_error()) break;
    auto const offset = offset_of(asked_us, answered_us, said->value().now_us);
    if (!best || offset.error_us < best->error_us) best = offset;
  }
  auto said = co_await workers_.flights_of(url, run, deadline);
  if (said.has_error())
    rank.why = said.error().detail;
  else if (said->has_error())
    rank.why = said->error().detail;
  else if (said->value().items.empty() || !best)
    rank.why = "the worker has no record of the run: it did not come to it, or more than a thousand came after it";
  else
    rank.flight = std::move(said->value().items.front());
  if (best) rank.clock = *best;
  --gathering->pending;
  gathering->gathered.notify_all();
}

}  // namespace chorus::coordinator
