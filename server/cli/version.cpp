#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "collectives/plan/spec.hpp"
#include "server/cli/commands.hpp"

namespace chorus::cli {
namespace {

ExitCode version(Session const& session) {
  if (session.json)
    session.out << boost::json::serialize(
                       boost::json::object{{"version", CHORUS_VERSION}, {"generator_version", plan::generator_version}})
                << '\n';
  else
    session.out << "chorus " CHORUS_VERSION " (plan generator " << plan::generator_version << ")\n";
  return ExitCode::ok;
}

}  // namespace

void add_version(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("version", "Print the version of this program and of its plan generator");
  commands.bind(command, version);
}

}  // namespace chorus::cli
