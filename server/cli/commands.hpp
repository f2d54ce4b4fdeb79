// The commands of `chorus`: every file of a command group adds its own to the command line and binds what they do.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "server/cli/session.hpp"

namespace chorus::cli {

// What each command does. Filled before the command line is parsed; an action owns the options it reads.
class Commands {
 public:
  using Action = std::function<ExitCode(Session const&)>;

  void bind(CLI::App& command, Action action) { actions_[&command] = std::move(action); }

  // The action of the innermost command that was named, or null.
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
void add_token(CLI::App& root, Commands& commands);
void add_doctor(CLI::App& root, Commands& commands);
void add_top(CLI::App& root, Commands& commands);
void add_trace(CLI::App& root, Commands& commands);
void add_version(CLI::App& root, Commands& commands);

// The innermost command that was named; the root itself if none was.
[[nodiscard]] CLI::App const& named_command(CLI::App const& root);

// Prints what is wrong with the command line, with a suggestion where something was mistyped, or the help that was
// asked for. Call with what root.parse threw.
[[nodiscard]] ExitCode explain(CLI::App const& root, CLI::ParseError const& error, Session const& session);

}  // namespace chorus::cli
