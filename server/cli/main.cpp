// The `chorus` command: builds the command line, parses it, and runs the one command that it names.
#include <CLI/CLI.hpp>
#include <iostream>

#include "base/runtime/environment.hpp"
#include "metrics/build/build.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/connection/client.hpp"

namespace {

using namespace chorus;

std::string check_coordinator(std::string const& urls) {
  for (auto const& url : cli::split_services(urls))
    if (auto const status = cli::check_coordinator_url(url); !status) return status.error().detail;
  return "";
}

void add_commands(CLI::App& root, cli::Commands& commands) {
  cli::add_status(root, commands);
  cli::add_check(root, commands);
  cli::add_health(root, commands);
  cli::add_workers(root, commands);
  cli::add_tensors(root, commands);
  cli::add_groups(root, commands);
  cli::add_events(root, commands);
  cli::add_run(root, commands);
  cli::add_plan(root, commands);
  cli::add_simulate(root, commands);
  cli::add_algorithms(root, commands);
  cli::add_crossover(root, commands);
  cli::add_verify(root, commands);
  cli::add_locality(root, commands);
  cli::add_bench(root, commands);
  cli::add_journal(root, commands);
  cli::add_token(root, commands);
  cli::add_doctor(root, commands);
  cli::add_top(root, commands);
  cli::add_trace(root, commands);
  cli::add_version(root, commands);
}

cli::ExitCode run(int argc, char** argv) {
  cli::Session session{.out = std::cout, .err = std::cerr};
  cli::Commands commands;

  CLI::App root("Collective communication over HTTP: looks at a Chorus service and launches collectives.", "chorus");
  root.require_subcommand(0, 1);
  root.set_version_flag("--version",
                        [&] { return metrics::version_text(metrics::this_build(), "chorus", argc, argv); });
  root.fallthrough();
  root.get_formatter()->column_width(36);
  root.footer(
      "Every command takes --json, --coordinator URL and --token-file FILE.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no coordinator reached.");
  root.add_option("--coordinator", session.coordinator, "URL of the coordinator, or of several, with commas")
      ->envname("CHORUS_COORDINATOR")
      ->type_name("URL")
      ->check(CLI::Validator(check_coordinator, ""))
      ->capture_default_str();
  auto& credentials = session.credentials;
  root.add_option("--token-file", credentials.token_file, "file with the token that is sent to the coordinator")
      ->envname("CHORUS_TOKEN_FILE")
      ->type_name("FILE");
  root.add_option("--tls-ca", credentials.tls_authorities, "authorities, PEM, for https (default: the system's)")
      ->envname("CHORUS_TLS_CA")
      ->type_name("FILE");
  auto* const certificate = root.add_option("--tls-cert", credentials.tls_certificate, "certificate to show, PEM")
                                ->envname("CHORUS_TLS_CERT")
                                ->type_name("FILE");
  auto* const key = root.add_option("--tls-key", credentials.tls_key, "its private key, PEM")
                        ->envname("CHORUS_TLS_KEY")
                        ->type_name("FILE")
                        ->needs(certificate);
  certificate->needs(key);
  root.add_flag("--json", session.json, "print JSON, one object per line");
  add_commands(root, commands);

  try {
    root.parse(argc, argv);
  } catch (CLI::ParseError const& error) { return cli::explain(root, error, session); }
  if (auto const* action = commands.chosen(root)) return (*action)(session);
  std::cerr << root.help();
  return cli::ExitCode::usage;
}

}  // namespace

int main(int argc, char** argv) {
  http::ignore_file_size_signal();
  http::throw_on_lost_output();
  return http::run_command("error", [argc, argv] { return static_cast<int>(run(argc, argv)); });
}
