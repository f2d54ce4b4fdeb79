// The commands of `chorus`: every file of a command group adds its commands to the command line and binds their
// actions.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "server/cli/connection/session.hpp"

namespace chorus::cli {

// The actions of the commands. Filled before the command line is parsed; an action owns the options that it reads.
class Commands {
 public:
  using Action = std::function<ExitCode(Session const&)>;

  void bind(CLI::App& command, Action action) { actions_[&command] = std::move(action); }

  // Returns the action of the innermost command in the command line, or null.
  [[nodiscard]] Action const* chosen(CLI::App const& root) const;

 private:
  std::map<CLI::App const*, Action> actions_;
};

void add_status(CLI::App& root, Commands& commands);
void add_check(CLI::App& root, Commands& commands);
void add_health(CLI::App& root, Commands& commands);
void add_workers(CLI::App& root, Commands& commands);
void add_tensors(CLI::App& root, Commands& commands);
void add_groups(CLI::App& root, Commands& commands);
void add_events(CLI::App& root, Commands& commands);
void add_run(CLI::App& root, Commands& commands);
void add_locality(CLI::App& root, Commands& commands);
void add_plan(CLI::App& root, Commands& commands);
void add_algorithms(CLI::App& root, Commands& commands);
void add_crossover(CLI::App& root, Commands& commands);
void add_simulate(CLI::App& root, Commands& commands);
void add_verify(CLI::App& root, Commands& commands);
void add_bench(CLI::App& root, Commands& commands);
void add_journal(CLI::App& root, Commands& commands);
void add_token(CLI::App& root, Commands& commands);
void add_doctor(CLI::App& root, Commands& commands);
void add_top(CLI::App& root, Commands& commands);
void add_trace(CLI::App& root, Commands& commands);
void add_version(CLI::App& root, Commands& commands);

// Returns the innermost command in the command line; the root if there is none.
[[nodiscard]] CLI::App const& named_command(CLI::App const& root);

// Prints the mistake in the command line, with a suggestion for a misspelt word, or the requested help. Call it with
// the exception of root.parse.
[[nodiscard]] ExitCode explain(CLI::App const& root, CLI::ParseError const& error, Session const& session);

}  // namespace chorus::cli
