#include "server/coordinator/coordinator.hpp"

#include "server/coordinator/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

http::Observer count_in(metrics::CoordinatorMetrics& metrics) {
  return [&metrics](http::Exchange const& exchange) {
    metrics.request(http::name(exchange.method), exchange.route, exchange.status,
                    std::chrono::duration<double>(exchange.duration).count());
  };
}

}  // namespace

Coordinator::Coordinator(boost::asio::any_io_executor executor, CoordinatorOptions options,
                         std::unique_ptr<JournalFile> journal, Random random, std::shared_ptr<spdlog::logger> log)
    : log_(std::move(log)),
      metrics_(metrics::this_build(), wall_seconds()),
      client_(executor),
      workers_(client_, options.failpoint),
      journal_(executor, std::move(journal), options.journal, options.failpoint, *log_),
      events_(executor, journal_, options.events),
      chronicle_(journal_, events_),
      planner_(options.constants),
      locks_changed_(executor),
      cluster_({executor, workers_, planner_, locks_, locks_changed_, metrics_, journal_, events_, *log_, random},
               options.cluster, options.lease),
      collectives_({{executor, workers_, planner_, cluster_.groups(), locks_, locks_changed_, chronicle_, random},
                    metrics_,
                    journal_,
                    *log_,
                    [this](std::string const& worker, std::string const& incarnation) {
                      cluster_.suspect(worker, incarnation);
                    }},
                   options.execution, options.records),
      parameters_({executor, workers_, cluster_, *log_}, options.directory),
      checkpoints_({executor, workers_, parameters_, metrics_, *log_}, options.checkpoints),
      survey_({executor, workers_, cluster_}, options.survey),
      demo_({executor, workers_, cluster_, collectives_}),
      worker_routes_(cluster_, lease_connections_),
      group_routes_(cluster_),
      collective_routes_(collectives_),
      parameter_routes_(parameters_, checkpoints_, cluster_),
      event_routes_(events_),
      simulation_routes_(planner_),
      service_routes_({cluster_, planner_, metrics_, journal_, [this] { return server_.open_connections(); },
                       [this] { return draining_; }}),
      status_routes_({cluster_, collectives_, parameters_, survey_, demo_, events_, journal_,
                      std::move(options.settings), [this] { return draining_; }}),
      server_(executor, router_, options.http, count_in(metrics_)) {
  worker_routes_.add_to(router_);
  group_routes_.add_to(router_);
  collective_routes_.add_to(router_);
  parameter_routes_.add_to(router_);
  event_routes_.add_to(router_);
  simulation_routes_.add_to(router_);
  service_routes_.add_to(router_);
  status_routes_.add_to(router_);
  server_.on_close([this](std::string const& remote) {
    if (auto const holder = lease_connections_.closed(remote)) cluster_.suspect(holder->id, holder->incarnation);
  });
}

Coordinator::~Coordinator() = default;

Status Coordinator::restore() {
  auto const rows = journal_.read();
  if (!rows) return rows.error();
  auto state = parse_rows(*rows);
  if (!state) return state.error();
  if (journal_.on_disk())
    log_->info("the journal has {} workers, {} groups, {} collectives, {} events", state->workers.size(),
               state->groups.size(), state->collectives.size(), state->events.size());
  events_.restore(std::move(state->events));
  collectives_.restore(*state);
  cluster_.restore(std::move(*state));
  return ok();
}

void Coordinator::tell(char const* type) {
  api::Event event;
  event.type = type;
  event.detail = metrics::this_build().version;
  events_.publish(std::move(event));
}

Result<std::uint16_t> Coordinator::start(std::string const& host, std::uint16_t port) {
  if (auto const restored = restore(); !restored) return restored.error();
  auto const listening = server_.listen(host, port);
  if (!listening) return listening;
  journal_.start();
  tell("coordinator.started");
  cluster_.start({[this](std::string const& worker, std::string const& incarnation, std::string const& why) {
                    collectives_.worker_lost(worker, incarnation, why);
                    parameters_.worker_lost(worker, incarnation);
                  },
                  [this](std::string const& worker, std::string const& incarnation) {
                    parameters_.worker_lost(worker, incarnation);
                  },
                  [this](std::string const& group) { parameters_.group_changed(group); }});
  checkpoints_.start();
  collectives_.recover();
  return listening;
}

boost::asio::awaitable<void> Coordinator::stop(TimePoint until) {
  constexpr auto time_to_read_the_last_events = std::chrono::seconds(1);
  draining_ = true;
  tell("coordinator.stopping");
  cluster_.drain();
  co_await collectives_.stop(until);
  co_await demo_.stop();
  co_await survey_.stop();
  co_await checkpoints_.stop();
  co_await parameters_.stop();
  co_await cluster_.stop();
  co_await journal_.stop();
  co_await events_.close(std::chrono::steady_clock::now() + time_to_read_the_last_events);
  co_await server_.stop();
  client_.close();
}

}  // namespace chorus::coordinator
