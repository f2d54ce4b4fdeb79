// workers: lists the workers with their localities and GPUs.
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "http/api/cluster/membership.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/output/gpu_table.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/text/format.hpp"
#include "server/cli/text/units.hpp"

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

// Prints one object per GPU in the worker's form, with the worker's id in front.
void print_gpus_as_json(api::Worker const& worker, std::ostream& out) {
  auto const shown = boost::json::parse(http::encode(worker));
  for (auto const& gpu : shown.at("gpus").as_array()) {
    boost::json::object line{{"worker", worker.id}};
    line.insert(gpu.as_object().begin(), gpu.as_object().end());
    out << boost::json::serialize(line) << '\n';
  }
}

ExitCode gpus(Session const& session) {
  auto const workers = Client(session).list<api::WorkerList>("/v1/workers", workers_per_page);
  if (!workers) return report(session, workers.error());
  if (session.json)
    for (auto const& worker : *workers) print_gpus_as_json(worker, session.out);
  else
    gpu_table(*workers).print(session.out);
  return ExitCode::ok;
}

ExitCode remove(std::string const& id, Session const& session) {
  auto const done = Client(session).send({.method = "DELETE", .path = "/v1/workers/" + percent_encode(id)});
  if (!done) return report(session, done.error());
  if (session.json)
    session.out << boost::json::serialize(boost::json::object{{"removed", id}}) << '\n';
  else
    session.out << "worker " << id << " is out; while its process runs it joins again\n";
  return ExitCode::ok;
}

}  // namespace

void add_workers(CLI::App& root, Commands& commands) {
  auto& command =
      *root.add_subcommand("workers", "List the workers, where they stand and what they belong to; take one out");
  command.require_subcommand(0, 1);
  commands.bind(command, workers);

  commands.bind(*command.add_subcommand("gpus", "List the workers' GPUs and what they are wired to"), gpus);

  auto const removed = std::make_shared<std::string>();
  auto& remove_command =
      *command.add_subcommand("remove", "Take a worker out, at once and whoever runs it; needs the role admin");
  remove_command.add_option("ID", *removed, "id of the worker")->required()->type_name("");
  commands.bind(remove_command, [removed](Session const& session) { return remove(*removed, session); });
}

}  // namespace chorus::cli
