#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "collectives/plan/spec.hpp"
#include "metrics/build/build.hpp"
#include "server/cli/commands/commands.hpp"

namespace chorus::cli {
namespace {

ExitCode version(Session const& session) {
  auto const build = metrics::this_build();
  boost::json::object object{{"program", "chorus"}, {"generator_version", plan::generator_version}};
  for (auto const& [name, value] : metrics::fields_of(build)) object[name] = value;
  if (session.json)
    session.out << boost::json::serialize(object) << '\n';
  else
    session.out << metrics::version_text(build, "chorus", 0, nullptr) << '\n';
  return ExitCode::ok;
}

}  // namespace

void add_version(CLI::App& root, Commands& commands) {
  auto& command =
      *root.add_subcommand("version", "Print which build this program is, and the version of its plan generator");
  commands.bind(command, version);
}

}  // namespace chorus::cli
