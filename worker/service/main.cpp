// chorus-worker: one process that holds tensors and takes part in collectives.
//
// Two threads: this one runs HTTP, the agent and the rest of the control plane; the data plane has its own.
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <ctime>

#include "base/runtime/environment.hpp"
#include "base/runtime/task_group.hpp"
#include "metrics/log_counter.hpp"
#include "worker/service/flags.hpp"
#include "worker/service/surroundings.hpp"
#include "worker/service/worker.hpp"

namespace {

namespace asio = boost::asio;
using chorus::service::Worker;

// Waits for a signal to stop, and stops. A second signal ends the process at once.
asio::awaitable<void> run_until_told(Worker& worker, asio::signal_set& signals, std::shared_ptr<spdlog::logger> log) {
  auto const [failure, signal] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!failure) log->info("signal {}: finishing what runs, then leaving", signal);
  chorus::http::expect_no_more_signals();
  co_await worker.stop();
}

}  // namespace

int main(int argc, char** argv) {
  chorus::http::explain_failures();
  int exit_status = 0;
  auto flags = chorus::service::parse_flags(argc, argv, exit_status);
  if (!flags) return exit_status;
  flags->options.host_name = chorus::service::host_name();
  flags->options.incarnation = chorus::service::draw_incarnation();
  flags->options.start_time_seconds = static_cast<double>(std::time(nullptr));

  auto const log = std::make_shared<spdlog::logger>(
      "worker", spdlog::sinks_init_list{std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                        std::make_shared<chorus::metrics::LogCounter>()});
  log->set_level(spdlog::level::from_str(flags->log_level));
  chorus::logging::configure(*log, flags->options.log_format);
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(log);  // for the http room: standard output carries only the address
  chorus::http::ignore_signals_of_writes();
  flags->options.connections = chorus::http::prepare_for_connections(flags->options.connections);

  auto gpus = chorus::service::find_gpus(flags->options.gpus);
  if (!gpus) {
    log->error("--gpus: {}", gpus.error().detail);
    return 1;
  }
  asio::io_context control(1);
  asio::signal_set signals(control);
  for (auto const signal : chorus::http::ending_signals()) signals.add(signal);
  auto const fenced = [&](std::string const& why) {
    log->error("{}: this one ends", why);
    exit_status = 1;
    signals.cancel();
  };
  Worker worker(control, std::move(flags->options), std::move(*gpus), log, fenced);
  if (auto const opened = worker.open(); !opened) {
    log->error("{}", opened.error().detail);
    return 1;
  }
  std::printf("listening on %s\n", worker.listens_on().c_str());
  std::fflush(stdout);

  chorus::http::TaskGroup tasks(control.get_executor());
  tasks.spawn("worker", run_until_told(worker, signals, log));
  control.run();
  return exit_status;
}
