// workers: who is here, and where?
#include <ostream>

#include "http/api/membership.hpp"
#include "server/cli/client.hpp"
#include "server/cli/commands.hpp"
#include "server/cli/format.hpp"
#include "server/cli/table.hpp"
#include "server/cli/units.hpp"

namespace chorus::cli {
namespace {

ExitCode workers(Session const& session) {
  auto const workers = Client(session).list<api::WorkerList>("/v1/workers", workers_per_page);
  if (!workers) return report(session, workers.error());
  if (session.json) {
    for (auto const& worker : *workers) session.out << http::encode(worker) << '\n';
    return ExitCode::ok;
  }
  Table table({{"WORKER"}, {"STATE"}, {"LOCALITY"}, {"HEARD", Align::right}, {"GROUPS"}, {"VERSION"}, {"URL"}});
  for (auto const& worker : *workers)
    table.add({worker.id, worker.state, format_locality(worker.locality),
               format_seconds(static_cast<double>(worker.heard_ms_ago) / 1000) + " ago", join(worker.groups, ","),
               worker.version, worker.url});
  table.print(session.out);
  return ExitCode::ok;
}

}  // namespace

void add_workers(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("workers", "List the workers, where they stand and what they belong to");
  commands.bind(command, workers);
}

}  // namespace chorus::cli
