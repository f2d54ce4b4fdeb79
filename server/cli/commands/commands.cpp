#include "server/cli/commands/commands.hpp"

#include <ostream>
#include <vector>

#include "base/usage_text.hpp"
#include "collectives/core/nearest_name.hpp"

namespace chorus::cli {
namespace {

std::vector<std::string_view> command_names(CLI::App const& app) {
  std::vector<std::string_view> names;
  for (auto const* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

// Returns the long options of a command and of its parents, without dashes.
std::vector<std::string_view> option_names(CLI::App const* app) {
  std::vector<std::string_view> names;
  for (; app != nullptr; app = app->get_parent())
    for (auto const* option : app->get_options())
      for (auto const& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::string did_you_mean(std::string_view dashes, std::string_view name) {
  return name.empty() ? "" : "; did you mean '" + std::string(dashes) + std::string(name) + "'?";
}

// Describes the first argument that no command accepted.
std::string describe_leftover(CLI::App const& command, std::string const& argument) {
  if (argument.starts_with("--")) {
    auto const option = argument.substr(2, argument.find('=') - 2);
    return "unknown option '--" + option + "'" + did_you_mean("--", nearest_name(option, option_names(&command)));
  }
  auto const commands = command_names(command);
  if (argument.starts_with('-') || commands.empty()) return "unexpected argument '" + argument + "'";
  return "unknown command '" + argument + "'" + did_you_mean("", nearest_name(argument, commands));
}

std::string full_name(CLI::App const& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : full_name(*command.get_parent()) + " " + command.get_name();
}

}  // namespace

Commands::Action const* Commands::chosen(CLI::App const& root) const {
  auto const found = actions_.find(&named_command(root));
  return found == actions_.end() ? nullptr : &found->second;
}

CLI::App const& named_command(CLI::App const& root) {
  auto const named = root.get_subcommands();
  return named.empty() ? root : named_command(*named.front());
}

ExitCode explain(CLI::App const& root, CLI::ParseError const& error, Session const& session) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    root.exit(error, session.out, session.err);
    return ExitCode::ok;
  }
  auto const& command = named_command(root);
  auto const leftover = root.remaining(true);
  auto const code = report_usage(
      session, leftover.empty() ? http::usage_text(error.what()) : describe_leftover(command, leftover.front()));
  session.err << "see: " << full_name(command) << " --help\n";
  return code;
}

}  // namespace chorus::cli
