// status: is everything well, and if not, what is wrong?
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "http/api/collectives.hpp"
#include "http/api/status.hpp"
#include "server/cli/client.hpp"
#include "server/cli/commands.hpp"
#include "server/cli/format.hpp"

namespace chorus::cli {
namespace {

void print_json(api::CoordinatorStatus const& status, Session const& session) {
  boost::json::array reasons;
  for (auto const& reason : status.verdict.reasons) reasons.push_back({{"level", reason.level}, {"text", reason.text}});
  boost::json::object const object{{"coordinator", session.coordinator},
                                   {"workers", status.workers},
                                   {"ready", status.ready},
                                   {"groups", status.groups},
                                   {"degraded", status.degraded},
                                   {"running", status.running},
                                   {"level", status.verdict.level},
                                   {"verdict", status.verdict.text},
                                   {"reasons", std::move(reasons)}};
  session.out << boost::json::serialize(object) << '\n';
}

void print_running(std::vector<api::Collective> const& collectives, Session const& session) {
  for (auto const& one : collectives)
    if (!has_ended(one))
      session.out << "collective " << one.id << " is " << one.state << ": " << one.request.op << " of "
                  << one.request.tensor << " in " << one.request.group << '\n';
}

ExitCode status(Session const& session) {
  Client const client(session);
  auto const status = client.ask<api::CoordinatorStatus>({.path = "/v1/status"});
  if (!status) return report(session, status.error());
  if (session.json) {
    print_json(*status, session);
    return ExitCode::ok;
  }
  session.out << status->verdict.text << '\n';
  for (auto const& reason : status->verdict.reasons) session.out << reason.level << ": " << reason.text << '\n';
  if (status->running == 0) return ExitCode::ok;
  auto const collectives = client.list<api::CollectiveList>("/v1/collectives", collectives_per_page);
  if (!collectives) return report(session, collectives.error());
  print_running(*collectives, session);
  return ExitCode::ok;
}

}  // namespace

void add_status(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("status", "Say in one sentence whether all is well, and what is not");
  commands.bind(command, status);
}

}  // namespace chorus::cli
