#include "server/coordinator/coordinator.hpp"

#include <algorithm>

#include "http/openapi/document.hpp"
#include "server/coordinator/observability/scrape.hpp"
#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

http::Observer count_in(metrics::CoordinatorMetrics& metrics) {
  return [&metrics](http::Exchange const& exchange) {
    metrics.request(http::name(exchange.method), exchange.route, exchange.status,
                    std::chrono::duration<double>(exchange.duration).count());
  };
}

boost::asio::any_io_executor instead_of_threads(boost::asio::any_io_executor const& executor,
                                                CoordinatorOptions const& options) {
  return options.has_threads ? boost::asio::any_io_executor() : executor;
}

boost::asio::any_io_executor instead_of_journal_thread(boost::asio::any_io_executor const& executor,
                                                       CoordinatorOptions const& options) {
  return options.store_executor ? options.store_executor : instead_of_threads(executor, options);
}

std::optional<double> interval_of(Checkpoints::Schedule const& schedule) {
  if (schedule.name.empty()) return std::nullopt;
  return std::chrono::duration<double>(schedule.interval).count();
}

constexpr auto time_for_the_journal = std::chrono::seconds(2);  // at least, when the coordinator ends

bool ended_without_goodbye(std::vector<api::Event> const& events) {
  auto const last = std::find_if(events.rbegin(), events.rend(),
                                 [](auto const& event) { return event.type.starts_with("coordinator."); });
  return last != events.rend() && last->type != "coordinator.stopping";
}

std::uint64_t id_of_a_log(Random const& random) { return std::max<std::uint64_t>(random(), 1); }

}  // namespace

Coordinator::Coordinator(boost::asio::any_io_executor executor, CoordinatorOptions options,
                         std::unique_ptr<Store> journal, Random random, std::shared_ptr<spdlog::logger> log)
    : log_(std::move(log)),
      checkpoint_interval_s_(interval_of(options.checkpoints)),
      memory_(options.memory),
      leadership_(std::move(options.leadership)),
      metrics_(metrics::this_build(), options.process_start_seconds.value_or(wall_seconds()),
               metrics::log_counter_of(*log_)),
      security_(options.security, {"/v1/workers/{id}/lease"},
                [this](std::string_view reason) { metrics_.refused(reason); }),
      client_(executor, &security_.credentials()),
      workers_(client_, options.failpoint),
      journal_(executor, std::move(journal), options.journal, options.failpoint, *log_,
               instead_of_journal_thread(executor, options)),
      events_(executor, journal_, options.events, id_of_a_log(random)),
      collective_history_(journal_, events_),
      planner_(options.constants, instead_of_threads(executor, options)),
      locks_changed_(executor),
      cluster_({executor, workers_, planner_, locks_, locks_changed_, metrics_, journal_, events_, group_statistics_,
                *log_, random},
               options.cluster, options.lease),
      collectives_({{executor, workers_, planner_, cluster_.groups(), locks_, locks_changed_, collective_history_,
                     group_statistics_, random},
                    metrics_,
                    journal_,
                    *log_,
                    [this](std::string const& worker, std::string const& incarnation) {
                      cluster_.suspect(worker, incarnation);
                    }},
                   options.execution, options.records),
      stall_inspector_({executor, workers_, collectives_, collective_history_, metrics_, *log_}, options.stalls),
      parameters_({executor, workers_, cluster_, journal_, *log_, random}, options.directory),
      checkpoints_({executor, workers_, parameters_, metrics_, *log_}, options.checkpoints),
      survey_({executor, workers_, cluster_}, options.survey),
      demo_({executor, workers_, cluster_, collectives_}),
      worker_routes_(cluster_, lease_connections_),
      once_(executor),
      group_routes_(cluster_, once_),
      collective_routes_(collectives_),
      trace_routes_(executor, collectives_, cluster_, workers_),
      parameter_routes_(parameters_, checkpoints_, cluster_, once_),
      event_routes_(events_),
      simulation_routes_(planner_),
      service_routes_(
          {cluster_, planner_, [this] { return metrics_text(); }, journal_, [this] { return draining_; }, security_}),
      status_routes_({cluster_, collectives_, parameters_, survey_, demo_, events_, journal_, security_,
                      std::move(options.settings), once_, [this] { return draining_; }, std::move(options.url)}),
      server_(executor, router_, options.http, count_in(metrics_), security_.door()),
      lag_(executor, [this](double seconds) { metrics_.loop_lag(seconds); }) {
  worker_routes_.add_to(router_);
  group_routes_.add_to(router_);
  collective_routes_.add_to(router_);
  trace_routes_.add_to(router_);
  parameter_routes_.add_to(router_);
  event_routes_.add_to(router_);
  simulation_routes_.add_to(router_);
  service_routes_.add_to(router_);
  status_routes_.add_to(router_);
  http::openapi::restrict_queries(router_, http::openapi::Service::coordinator);
  journal_.on_written(
      [this](Journal::Clock::duration took) { metrics_.journal_written(std::chrono::duration<double>(took).count()); });
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
    log_->info("the journal has {} workers, {} groups, {} parameters, {} collectives, {} events", state->workers.size(),
               state->groups.size(), state->parameters.size(), state->collectives.size(), state->events.size());
  was_unclean_ = ended_without_goodbye(state->events);
  auto const log = state->counters.find(Counter::event_log);
  events_.restore(std::move(state->events), log != state->counters.end() ? std::optional(log->second) : std::nullopt);
  collectives_.restore(*state);
  parameters_.restore(*state);
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
  if (auto const opened = security_.open(); !opened) return opened.error();
  if (auto const restored = restore(); !restored) return restored.error();
  auto const listening = server_.listen(host, port);
  if (!listening) return listening;
  journal_.start();
  lag_.start();
  tell("coordinator.started");
  cluster_.start({[this](std::string const& worker, std::string const& incarnation, std::string const& why) {
                    collectives_.worker_lost(worker, incarnation, why);
                    parameters_.worker_lost(worker, incarnation);
                  },
                  [this](std::string const& worker, std::string const& incarnation) {
                    parameters_.worker_ended(worker, incarnation);
                  },
                  [this](std::string const& group) { parameters_.group_changed(group); },
                  [this](std::string const& worker) { parameters_.worker_joined(worker); }});
  parameters_.recover();
  stall_inspector_.start();
  checkpoints_.start();
  collectives_.recover();
  return listening;
}

std::string Coordinator::metrics_text() const {
  auto scrape = scrape_of(cluster_, collectives_, parameters_, events_, journal_);
  scrape.state = {!draining_ && !journal_.lasting_failure(),  // as GET /readyz
                  draining_,
                  server_.open_connections(),
                  server_.requests_in_flight(),
                  security_.authenticates(),
                  security_.certificate_ends_seconds()};
  scrape.state.memory = {memory_.bytes, http::memory_used(memory_)};
  if (scrape.journal) scrape.journal->was_unclean = was_unclean_;
  if (journal_.on_disk()) scrape.state.disk_waits = {{"journal", journal_.counts().waiting_seconds}};
  scrape.checkpoint_interval_seconds = checkpoint_interval_s_;
  if (leadership_) scrape.leadership = leadership_();
  return metrics_.text(scrape);
}

void Coordinator::drain() {
  draining_ = true;
  cluster_.drain();
}

boost::asio::awaitable<void> Coordinator::hand_over(TimePoint until) {
  drain();
  co_await collectives_.finish(until);
  static_cast<void>(co_await journal_.flush(std::max(until, std::chrono::steady_clock::now() + time_for_the_journal)));
}

boost::asio::awaitable<void> Coordinator::stop(TimePoint until) {
  constexpr auto time_to_read_the_last_events = std::chrono::seconds(1);
  drain();
  tell("coordinator.stopping");
  co_await collectives_.stop(until);
  co_await stall_inspector_.stop();
  co_await trace_routes_.stop();
  co_await demo_.stop();
  co_await survey_.stop();
  co_await checkpoints_.stop();
  co_await parameters_.stop();
  co_await cluster_.stop();
  co_await journal_.stop(std::max(until, std::chrono::steady_clock::now() + time_for_the_journal));
  co_await events_.close(std::chrono::steady_clock::now() + time_to_read_the_last_events);
  co_await server_.stop();
  co_await lag_.stop();
  client_.close();
}

}  // namespace chorus::coordinator
