// chorus-coordinator: flags, signals, and the thread that serves.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <random>

#include "base/logging/log.hpp"
#include "base/runtime/environment.hpp"
#include "base/runtime/memory_limit.hpp"
#include "base/usage_text.hpp"
#include "http/calibration/constants_file.hpp"
#include "http/client/client.hpp"
#include "http/flags/security_flags.hpp"
#include "metrics/build/build.hpp"
#include "metrics/log_counter.hpp"
#include "server/coordinator/coordinator.hpp"
#include "server/coordinator/flag_settings.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/leading.hpp"
#include "server/coordinator/stores/store_flags.hpp"
#include "server/coordinator/text/identifier.hpp"

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
  coordinator::StoreOptions store;
  std::uint32_t etcd_lease_s = 2;
  coordinator::LeadingOptions leading;
  http::SecurityOptions security;
};

std::string check_host(std::string const& text) {
  auto const host = http::parse_listen_host(text);
  return host ? "" : host.error().detail;
}

std::string check_checkpoint(std::string const& name) {
  return name.empty() || coordinator::is_identifier(name)
             ? ""
             : coordinator::not_an_identifier("checkpoint", name, "").detail;
}

std::string check_advertise(std::string const& text) {
  auto const colon = text.rfind(':');
  bool const is_plain = text.find_first_of("/?#@ ") == std::string::npos;
  bool const has_host = colon != 0 && colon != std::string::npos;
  unsigned port = 0;
  if (has_host) {
    auto const* const end = text.data() + text.size();
    auto const [rest, failure] = std::from_chars(text.data() + colon + 1, end, port);
    if (failure != std::errc() || rest != end) port = 0;
  }
  return is_plain && port >= 1 && port <= 65535 ? "" : "'" + text + "' is not HOST:PORT";
}

void add_leading_flags(CLI::App& app, Flags& flags) {
  app.add_option("--advertise", flags.leading.advertise,
                 "HOST:PORT by which clients are led to this coordinator while it leads")
      ->envname("CHORUS_ADVERTISE")
      ->check(check_advertise);
  app.add_option("--etcd-lease-s", flags.etcd_lease_s, "after a leader has been silent for so long, another one leads")
      ->envname("CHORUS_ETCD_LEASE_S")
      ->check(CLI::Range(2, 600))
      ->needs("--etcd")
      ->capture_default_str();
}

// The names of flags do not help somebody whose variables are set by a unit or an image.
std::string explain(CLI::App const* app, CLI::Error const& error) {
  auto text = http::usage_text(CLI::FailureMessage::simple(app, error));
  if (error.get_name() == "ExcludesError")
    text.insert(text.find('\n') + 1,
                "CHORUS_JOURNAL and CHORUS_ETCD set these flags, too, and chorus-coordinator.service sets "
                "CHORUS_JOURNAL: a variable with an empty value sets nothing.\n");
  return text;
}

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--host", flags.host, "address to listen on")
      ->envname("CHORUS_HOST")
      ->check(check_host)
      ->capture_default_str();
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
      ->check(check_checkpoint)
      ->type_name("NAME");
  app.add_option("--checkpoint-interval-s", flags.checkpoint_interval_s, "how often")
      ->envname("CHORUS_CHECKPOINT_INTERVAL_S")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--checkpoint-keep", flags.checkpoint_keep, "how many of them stay")
      ->envname("CHORUS_CHECKPOINT_KEEP")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  coordinator::add_store_flags(
      app, flags.store,
      "where groups, collectives and events are kept, so that a restart forgets nothing; made if it does not exist; "
      "without it everything is in memory",
      "endpoints of etcd, with commas, where everything is kept instead of in a journal: several coordinators may run, "
      "and one of them leads");
  add_leading_flags(app, flags);
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
}

coordinator::Random system_random() {
  return [device = std::make_shared<std::random_device>()] {
    auto const high = static_cast<std::uint64_t>((*device)());
    return high << 32 | static_cast<std::uint64_t>((*device)());
  };
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string url_of(std::string_view scheme, std::string const& host, std::uint16_t port) {
  auto const literal = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return std::string(scheme) + "://" + literal + ":" + std::to_string(port);
}

// A second signal ends the process at once, by its default disposition.
boost::asio::awaitable<void> serve(coordinator::Coordinator* coordinator, boost::asio::signal_set* signals,
                                   std::chrono::milliseconds time_to_drain, std::shared_ptr<spdlog::logger> log) {
  auto const [error, number] = co_await signals->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (!error) log->info("signal {}: stopping", number);
  signals->clear();
  http::expect_no_more_signals();
  co_await coordinator->stop(std::chrono::steady_clock::now() + time_to_drain);
  log->info("stopped");
}

void rethrow(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

[[noreturn]] void end_process(std::exception_ptr failure, int status) {
  rethrow(std::move(failure));
  std::quick_exit(status);
}

boost::asio::awaitable<int> hand_over(coordinator::Leading* leading, boost::asio::signal_set* signals,
                                      std::chrono::milliseconds time_to_drain, std::shared_ptr<spdlog::logger> log) {
  auto const [error, number] = co_await signals->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (!error) log->info("signal {}: handing over", number);
  signals->clear();
  http::expect_no_more_signals();
  co_await leading->hand_over(std::chrono::steady_clock::now() + time_to_drain);
  co_return 0;
}

// Runs as one of several coordinators.
int run_with_others(boost::asio::io_context& io, boost::asio::signal_set& signals, Flags const& flags,
                    coordinator::CoordinatorOptions options, std::shared_ptr<spdlog::logger> const& log) {
  auto leading_options = flags.leading;
  leading_options.host = flags.host;
  leading_options.port = flags.port;
  leading_options.host_name = host_name();
  leading_options.etcd = flags.store.etcd;
  leading_options.election.lease = std::chrono::seconds(flags.etcd_lease_s);
  // Requests name the address by which standbys redirect, so it is a valid Host.
  if (!flags.leading.advertise.empty()) {
    auto const url = http::parse_url("http://" + flags.leading.advertise);
    if (url) options.security.allowed_hosts.push_back(url->host);
  }
  coordinator::Leading leading(io.get_executor(), std::move(leading_options), std::move(options), system_random(), log);
  auto const port = leading.start();
  if (!port) {
    log->error("{}", port.error().detail);
    return 1;
  }
  std::cout << "listening on " << url_of(leading.scheme(), flags.host, *port) << std::endl;
  boost::asio::co_spawn(io, leading.lead(), end_process);
  boost::asio::co_spawn(io, hand_over(&leading, &signals, std::chrono::milliseconds(flags.drain_ms), log), end_process);
  io.run();
  return 1;
}

int run(Flags const& flags, std::vector<chorus::api::Setting> settings) {
  auto const log = std::make_shared<spdlog::logger>(
      "coordinator", spdlog::sinks_init_list{std::make_shared<spdlog::sinks::stderr_color_sink_mt>(),
                                             std::make_shared<metrics::LogCounter>()});
  log->set_level(spdlog::level::from_str(flags.log_level));
  logging::configure(*log, logging::parse_format(flags.log_format).value());
  log->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(log);  // used by the http room; standard output has the address only
  boost::asio::io_context io(1);
  boost::asio::signal_set signals(io);  // before any client learns that this process serves
  for (auto const signal : http::ending_signals()) signals.add(signal);
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
  options.memory = http::memory_limit();
  options.http.connections = http::prepare_for_connections(options.http.connections);
  if (!flags.store.etcd.endpoints.empty()) return run_with_others(io, signals, flags, std::move(options), log);
  if (!flags.leading.advertise.empty())
    log->warn("--advertise is not used without --etcd: no standby leads clients to this coordinator");
  std::unique_ptr<coordinator::JournalFile> journal;
  if (flags.store.journal.empty()) {
    log->warn("no --journal: groups, collectives and Idempotency-Keys are forgotten when this process ends");
  } else {
    auto opened = coordinator::JournalFile::open(flags.store.journal);
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
  log->info("chorus-coordinator {} lease_ms={} memory_limit_mib={} ({})", metrics::this_build().version, flags.lease_ms,
            options.memory.bytes >> 20, options.memory.source);
  std::cout << "listening on " << url_of(coordinator.scheme(), flags.host, port.value()) << std::endl;
  boost::asio::co_spawn(io, serve(&coordinator, &signals, std::chrono::milliseconds(flags.drain_ms), log), rethrow);
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  http::explain_failures();
  http::ignore_service_links();
  http::ignore_signals_of_writes();
  Flags flags;
  CLI::App app("Chorus coordinator: membership, groups and collectives over HTTP.", "chorus-coordinator");
  add_flags(app, flags);
  app.failure_message(explain);
  app.set_version_flag("--version",
                       [&] { return metrics::version_text(metrics::this_build(), "chorus-coordinator", argc, argv); });
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    http::throw_on_lost_output();
    return http::run_command(app.get_name(), [&] { return app.exit(error) == 0 ? 0 : usage_error; });
  }
  flags.host = http::parse_listen_host(flags.host).value();
  return run(flags, coordinator::settings_of(app));
}
