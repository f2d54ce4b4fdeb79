// health: the health check of a container. Asks one service, coordinator or worker, without a token.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/connection/client.hpp"

namespace chorus::cli {
namespace {

struct HealthOptions {
  std::string url = "http://127.0.0.1:7070";
  bool live = false;
  std::chrono::milliseconds timeout{3000};
};

std::string check_service_url(std::string const& url) {
  auto const status = check_coordinator_url(url);
  return status ? std::string() : status.error().detail;
}

std::string without_line_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The exit code is 1 for every failure: container engines reserve other codes.
ExitCode health(HealthOptions const& options, Session const& session) {
  auto anybody = session;
  anybody.credentials.token_file.clear();
  auto const answer = Client(anybody, options.url, "the service")
                          .send({.path = options.live ? "/livez" : "/readyz", .patience = options.timeout});
  auto const healthy = answer.has_value();
  auto const said = healthy ? without_line_end(*answer) : answer.error().problem.detail;
  if (session.json)
    session.out << boost::json::serialize(
                       boost::json::object{{"url", options.url}, {"healthy", healthy}, {"detail", said}})
                << '\n';
  else
    (healthy ? session.out : session.err) << options.url << ": " << said << '\n';
  return healthy ? ExitCode::ok : ExitCode::failed;
}

}  // namespace

void add_health(CLI::App& root, Commands& commands) {
  auto& command =
      *root.add_subcommand("health", "Ask one coordinator or worker whether it is ready; for health checks");
  auto const options = std::make_shared<HealthOptions>();
  command.add_option("URL", options->url, "the service's own URL")
      ->envname("CHORUS_HEALTH_URL")
      ->check(CLI::Validator(check_service_url, ""))
      ->capture_default_str();
  command.add_flag("--live", options->live, "ask whether the process answers at all, not whether it is ready");
  add_duration(command, "--timeout", options->timeout, "how long it may take (3s)");
  commands.bind(command, [options](Session const& session) { return health(*options, session); });
}

}  // namespace chorus::cli
