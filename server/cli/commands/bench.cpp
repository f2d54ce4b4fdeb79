// bench: replaces the process by `chorus-bench`, which uses the data plane, so that `chorus` need not link it.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "collectives/core/result.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/text/errc.hpp"

namespace chorus::cli {
namespace {

constexpr auto program = "chorus-bench";

bool is_executable(std::filesystem::path const& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// First looks beside this binary: the two are built together, and should be measured together.
Result<std::filesystem::path> find_bench() {
  std::error_code error;
  auto const self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error && is_executable(self.parent_path() / program)) return self.parent_path() / program;
  auto const* search = std::getenv("PATH");
  std::string_view rest = search == nullptr ? "" : search;
  while (!rest.empty()) {
    auto const directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
    if (!directory.empty() && is_executable(std::filesystem::path(directory) / program))
      return std::filesystem::path(directory) / program;
  }
  return Error(CliErrc::program_missing, std::string(program) +
                                             " is neither beside this program nor in PATH; it comes " +
                                             "with the worker (build target chorus-bench)");
}

// Returns only if the program could not be started.
ExitCode bench(std::vector<std::string> arguments, Session const& session) {
  auto const path = find_bench();
  if (!path) return report(session, http::Problem(http::ProblemCode::unsupported, path.error().detail));
  if (session.json) arguments.insert(arguments.begin(), "--json");
  arguments.insert(arguments.begin(), path->string());
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(path->c_str(), pointers.data());
  auto const why = std::error_code(errno, std::generic_category()).message();
  return report(session,
                Failure{.problem = {http::ProblemCode::internal, "cannot start " + path->string() + ": " + why},
                        .is_local = true});
}

}  // namespace

void add_bench(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("bench", "Measure collectives between local processes (chorus-bench)");
  // All arguments behind `bench` are for the other program, including --json and --help.
  command.fallthrough(false);
  command.set_help_flag();
  command.allow_extras();
  command.prefix_command();
  commands.bind(command, [&command](Session const& session) { return bench(command.remaining(), session); });
}

}  // namespace chorus::cli
