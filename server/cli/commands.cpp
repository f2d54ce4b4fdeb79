#include "server/cli/commands.hpp"

#include <ostream>
#include <vector>

#include "server/cli/suggest.hpp"

namespace chorus::cli {
namespace {

std::vector<std::string> command_names(CLI::App const& app) {
  std::vector<std::string> names;
  for (auto const* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

// The long options of a command and of those around it.
std::vector<std::string> option_names(CLI::App const* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent())
    for (auto const* option : app->get_options())
      for (auto const& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What is wrong with the first argument that nothing took.
std::string describe_leftover(CLI::App const& command, std::string const& argument) {
  std::string text;
  std::vector<std::string> candidates;
  if (argument.starts_with('-')) {
    text = "unknown option '" + argument.substr(0, argument.find('=')) + "'";
    candidates = option_names(&command);
  } else if (auto names = command_names(command); !names.empty()) {
    text = "unknown command '" + argument + "'";
    candidates = std::move(names);
  } else {
    text = "unexpected argument '" + argument + "'";
  }
  if (auto const meant = nearest(argument.substr(0, argument.find('=')), candidates))
    text += "; did you mean '" + *meant + "'?";
  return text;
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
  auto const code =
      report_usage(session, leftover.empty() ? error.what() : describe_leftover(command, leftover.front()));
  session.err << "see: " << full_name(command) << " --help\n";
  return code;
}

}  // namespace chorus::cli
