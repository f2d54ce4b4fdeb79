// status and workers: is everybody here?
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"
#include "server/cli/client.hpp"
#include "server/cli/commands.hpp"
#include "server/cli/format.hpp"
#include "server/cli/table.hpp"
#include "server/cli/units.hpp"

namespace chorus::cli {
namespace {

struct Cluster {
  std::vector<api::Worker> workers;
  std::vector<api::Group> groups;
  std::vector<api::Collective> collectives;
};

bool is_lost(api::Worker const& worker) { return worker.state != "ready"; }
bool is_degraded(api::Group const& group) { return group.state != "ready"; }
bool is_under_way(api::Collective const& collective) { return !has_ended(collective); }

std::size_t count(auto const& items, auto const& condition) {
  return static_cast<std::size_t>(std::count_if(items.begin(), items.end(), condition));
}

Reply<Cluster> read_cluster(Client const& client) {
  auto workers = client.list<api::WorkerList>("/v1/workers", workers_per_page);
  if (!workers) return workers.error();
  auto groups = client.list<api::GroupList>("/v1/groups", groups_per_page);
  if (!groups) return groups.error();
  auto collectives = client.list<api::CollectiveList>("/v1/collectives", collectives_per_page);
  if (!collectives) return collectives.error();
  return Cluster{std::move(*workers), std::move(*groups), std::move(*collectives)};
}

// "4 of 4 workers ready; 1 group; 0 collectives running"
std::string verdict(Cluster const& cluster) {
  auto const ready = cluster.workers.size() - count(cluster.workers, is_lost);
  auto const degraded = count(cluster.groups, is_degraded);
  return std::to_string(ready) + " of " + format_count(cluster.workers.size(), "worker") + " ready; " +
         format_count(cluster.groups.size(), "group") +
         (degraded > 0 ? " (" + std::to_string(degraded) + " degraded)" : "") + "; " +
         format_count(count(cluster.collectives, is_under_way), "collective") + " running";
}

void print_json(Cluster const& cluster, Session const& session) {
  boost::json::object const object{{"coordinator", session.coordinator},
                                   {"workers", cluster.workers.size()},
                                   {"ready", cluster.workers.size() - count(cluster.workers, is_lost)},
                                   {"groups", cluster.groups.size()},
                                   {"degraded", count(cluster.groups, is_degraded)},
                                   {"running", count(cluster.collectives, is_under_way)},
                                   {"verdict", verdict(cluster)}};
  session.out << boost::json::serialize(object) << '\n';
}

void print_text(Cluster const& cluster, Session const& session) {
  session.out << verdict(cluster) << '\n';
  for (auto const& worker : cluster.workers)
    if (is_lost(worker))
      session.out << "worker " << worker.id << " is " << worker.state << ": last heard "
                  << format_seconds(static_cast<double>(worker.heard_ms_ago) / 1000) << " ago\n";
  for (auto const& group : cluster.groups)
    if (is_degraded(group))
      session.out << "group " << group.name << " is " << group.state << ": lost " << join(group.lost, ", ") << '\n';
  for (auto const& collective : cluster.collectives)
    if (is_under_way(collective))
      session.out << "collective " << collective.id << " is " << collective.state << ": " << collective.request.op
                  << " of " << collective.request.tensor << " in " << collective.request.group << '\n';
}

ExitCode status(Session const& session) {
  auto const cluster = read_cluster(Client(session));
  if (!cluster) return report(session, cluster.error());
  session.json ? print_json(*cluster, session) : print_text(*cluster, session);
  return ExitCode::ok;
}

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

void add_status(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("status", "Say in one sentence whether everybody is here");
  commands.bind(command, status);
}

void add_workers(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("workers", "List the workers, where they stand and what they belong to");
  commands.bind(command, workers);
}

}  // namespace chorus::cli
