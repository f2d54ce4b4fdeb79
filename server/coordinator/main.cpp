// chorus-coordinator: flags, signals, and the one thread that serves.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <iostream>
#include <random>

#include "http/calibration/constants_file.hpp"
#include "http/environment.hpp"
#include "http/flags/security_flags.hpp"
#include "http/logging/log.hpp"
#include "metrics/build.hpp"
#include "metrics/log_counter.hpp"
#include "server/coordinator/coordinator.hpp"
#include "server/coordinator/flag_settings.hpp"

namespace {

using namespace chorus;

constexpr int usage_error = 2;  // exit status

struct Flags {
  std::string host = "127.0.0.1";
  std::uint16_t port = 7070;
  std::uint32_t lease_ms = 5000;
  std::uint32_t stall_ms = 2000;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string checkpoint;
  std::uint32_t checkpoint_interval_s = 300;
  std::uint32_t checkpoint_keep = 3;
  std::uint32_t drain_ms = 10000;
  std::string constants;  // file
  std::string journal;    // file
  http::SecurityOptions security;
};

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--host", flags.host, "address to listen on")->envname("CHORUS_HOST")->capture_default_str();
  app.add_option("--port", flags.port, "port to listen on; 0 picks one")->envname("CHORUS_PORT")->capture_default_str();
  app.add_option("--lease-ms", flags.lease_ms, "a worker that is silent for so long is lost")
      ->envname("CHORUS_LEASE_MS")
      ->check(CLI::Range(100, 3600000))
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "what goes to stderr")
      ->envname("CHORUS_LOG_LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.add_option("--constants", flags.constants, "the cost model's constants, as chorus-bench --calibrate writes them")
      ->envname("CHORUS_CONSTANTS")
      ->type_name("FILE");
  app.add_option("--checkpoint", flags.checkpoint, "name of a checkpoint of all parameters that is made by itself")
      ->envname("CHORUS_CHECKPOINT")
      ->type_name("NAME");
  app.add_option("--checkpoint-interval-s", flags.checkpoint_interval_s, "how often")
      ->envname("CHORUS_CHECKPOINT_INTERVAL_S")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--checkpoint-keep", flags.checkpoint_keep, "how many of them stay")
      ->envname("CHORUS_CHECKPOINT_KEEP")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option(
         "--journal", flags.journal,
         "where groups, collectives and events are kept, so that a restart forgets nothing; made if it does not "
         "exist; without it everything is in memory")
      ->envname("CHORUS_JOURNAL")
      ->type_name("FILE");
  app.add_option("--drain-ms", flags.drain_ms, "how long a coordinator that is told to stop waits for what runs")
      ->envname("CHORUS_DRAIN_MS")
      ->check(CLI::Range(0, 3600000))
      ->capture_default_str();
  http::add_security_flags(app, flags.security);
  app.add_option("--stall-ms", flags.stall_ms, "a collective that has not moved for so long is said to be stalled")
      ->envname("CHORUS_STALL_MS")
      ->check(CLI::Range(50, 3600000))
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format, "lines for people, or one JSON object per line")
      ->envname("CHORUS_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.set_version_flag("--version", metrics::this_build().version);
}

coordinator::Random system_random() {
  return [device = std::make_shared<std::random_device>()] {
    auto const high = static_cast<std::uint64_t>((*device)());
    return high << 32 | static_cast<std::uint64_t>((*device)());
  };
}

std::string url_of(std::string_view scheme, std::string const& host, std::uint16_t port) {
  auto const literal = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return std::string(scheme) + "://" + literal + ":" + std::to_string(port);
}

// A second signal meets the default disposition, and ends the process at once.
boost::asio::awaitable<void> wait_for_signal(std::shared_ptr<spdlog::logger> log) {
  boost::asio::signal_set signals(co_await boost::asio::this_coro::executor, SIGTERM, SIGINT);
  auto const [error, number] = co_await signals.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (!error) log->info("signal {}: stopping", number);
}

boost::asio::awaitable<void> serve(coordinator::Coordinator* coordinator, std::chrono::milliseconds time_to_drain,
                                   std::shared_ptr<spdlog::logger> log) {
  co_await wait_for_signal(log);
  co_await coordinator->stop(std::chrono::steady_clock::now() + time_to_drain);
  log->info("stopped");
}

void rethrow(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

int run(Flags const& flags, std::vector<chorus::api::Setting> settings) {
  auto const log = std::make_shared<spdlog::logger>(
      "coordinator", spdlog::sinks_init_list{std::make_shared<spdlog::sinks::stderr_color_sink_mt>(),
                                             std::make_shared<metrics::LogCounter>()});
  log->set_level(spdlog::level::from_str(flags.log_level));
  logging::configure(*log, logging::parse_format(flags.log_format).value());
  log->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(log);  // of the http room: standard output is for the address alone
  boost::asio::io_context io(1);
  coordinator::CoordinatorOptions options;
  options.stalls.stall = std::chrono::milliseconds(flags.stall_ms);
  options.stalls.every = std::min(options.stalls.every, options.stalls.stall / 2);
  options.settings = std::move(settings);
  options.lease = std::chrono::milliseconds(flags.lease_ms);
  options.security = flags.security;
  options.security.allowed_hosts.push_back(flags.host);
  options.checkpoints = {flags.checkpoint, std::chrono::seconds(flags.checkpoint_interval_s), flags.checkpoint_keep};
  if (!flags.constants.empty()) {
    auto constants = calibration::read_constants(flags.constants);
    if (!constants) {
      std::cerr << "--constants: " << constants.error().detail << '\n';
      return usage_error;
    }
    options.constants = *constants;
  }
  options.http.connections = http::prepare_for_connections(options.http.connections);
  std::unique_ptr<coordinator::JournalFile> journal;
  if (flags.journal.empty()) {
    log->warn("no --journal: groups, collectives and Idempotency-Keys are forgotten when this process ends");
  } else {
    auto opened = coordinator::JournalFile::open(flags.journal);
    if (!opened) {
      log->error("{}", opened.error().detail);
      return 1;
    }
    journal = std::move(*opened);
  }
  coordinator::Coordinator coordinator(io.get_executor(), options, std::move(journal), system_random(), log);
  auto const port = coordinator.start(flags.host, flags.port);
  if (port.has_error()) {
    log->error("{}", port.error().detail);
    return 1;
  }
  log->info("chorus-coordinator {} lease_ms={}", metrics::this_build().version, flags.lease_ms);
  std::cout << "listening on " << url_of(coordinator.scheme(), flags.host, port.value()) << std::endl;
  boost::asio::co_spawn(io, serve(&coordinator, std::chrono::milliseconds(flags.drain_ms), log), rethrow);
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  http::ignore_service_links();
  http::ignore_broken_pipes();
  Flags flags;
  CLI::App app("Chorus coordinator: membership, groups and collectives over HTTP.", "chorus-coordinator");
  add_flags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) { return app.exit(error) == 0 ? 0 : usage_error; }
  return run(flags, coordinator::settings_of(app));
}
