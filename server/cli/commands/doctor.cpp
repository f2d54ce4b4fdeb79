// doctor: asks the coordinator and every worker, and describes the problems in sentences.
#include <algorithm>
#include <boost/json.hpp>
#include <future>
#include <ostream>

#include "server/cli/commands/commands.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/connection/coordinators.hpp"
#include "server/cli/output/diagnosis.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

constexpr std::chrono::milliseconds worker_patience{2000};
constexpr std::chrono::milliseconds probe_patience{5000};
constexpr std::size_t asked_at_once = 32;
constexpr std::uint32_t collectives_to_read = 50;

// URL of the coordinator that leads: standbys answer /readyz themselves. The whole list if none of it names a leader,
// and where a redirect would leave TLS.
std::string leader_of(Session const& session) {
  auto const answers = ask_coordinators(session);
  for (auto const& answer : answers)
    if (answer.state == "leads") return answer.url;
  for (auto const& answer : answers) {
    bool const keeps_tls = !answer.url.starts_with("https:") || answer.leader.starts_with("https:");
    if (check_coordinator_url(answer.leader) && keeps_tls) return answer.leader;
  }
  return session.coordinator;
}

// Failures: the service does not answer.
Reply<Readiness> readiness(Client const& client, std::chrono::milliseconds patience) {
  constexpr std::string_view with_complaint = "ready, but ";
  auto const answer = client.send({.path = "/readyz", .patience = patience});
  if (!answer && !answer.error().reachable) return answer.error();
  Readiness readiness;
  if (!answer) readiness.why_not = answer.error().problem.detail;
  if (answer && answer->starts_with(with_complaint)) {
    readiness.complaint = answer->substr(with_complaint.size());
    std::erase(readiness.complaint, '\n');
  }
  return readiness;
}

std::string version_of(Client const& client) {
  auto const answer = client.send({.path = "/v1"});
  boost::system::error_code error;
  auto const json = answer ? boost::json::parse(*answer, error) : boost::json::value();
  auto const* const version = json.is_object() ? json.as_object().if_contains("version") : nullptr;
  return version != nullptr && version->is_string() ? std::string(version->as_string()) : "unknown";
}

WorkerFacts ask_worker(Session const& session, api::Worker worker) {
  WorkerFacts facts;
  Client const coordinator(session), client(session, worker.url, "worker " + worker.id);
  auto const ready = readiness(client, worker_patience);
  if (ready)
    facts.readiness = *ready;
  else
    facts.unreachable = ready.error().problem.detail;
  if (ready)
    if (auto runs = client.ask<api::ProgressList>({.path = "/v1/progress", .patience = worker_patience}); runs)
      facts.runs = std::move(runs->items);
  auto reached = coordinator.ask<api::Reachability>(
      {.method = "POST", .path = "/v1/workers/" + percent_encode(worker.id) + "/probe", .patience = probe_patience});
  if (reached)
    facts.by_coordinator = std::move(*reached);
  else
    facts.by_coordinator.detail = reached.error().problem.detail;
  facts.worker = std::move(worker);
  return facts;
}

std::vector<WorkerFacts> ask_workers(Session const& session, std::vector<api::Worker> const& workers) {
  std::vector<WorkerFacts> all;
  for (std::size_t first = 0; first < workers.size(); first += asked_at_once) {
    std::vector<std::future<WorkerFacts>> answers;
    for (auto i = first; i < std::min(first + asked_at_once, workers.size()); ++i)
      answers.push_back(std::async(std::launch::async, ask_worker, std::cref(session), workers[i]));
    for (auto& answer : answers) all.push_back(answer.get());
  }
  return all;
}

Reply<ClusterFacts> read_facts(Session const& session) {
  Client const client(session);
  ClusterFacts facts;
  auto ready = readiness(Client(session, leader_of(session), "the coordinator"), probe_patience);
  if (!ready) return ready.error();
  facts.readiness = std::move(*ready);
  auto status = client.ask<api::CoordinatorStatus>({.path = "/v1/status"});
  if (!status) return status.error();
  facts.verdict = std::move(status->verdict);
  facts.version = version_of(client);
  auto const workers = client.list<api::WorkerList>("/v1/workers", workers_per_page);
  if (!workers) return workers.error();
  auto groups = client.list<api::GroupList>("/v1/groups", groups_per_page);
  if (!groups) return groups.error();
  facts.groups = std::move(*groups);
  auto collectives =
      client.ask<api::CollectiveList>({.path = "/v1/collectives?limit=" + std::to_string(collectives_to_read)});
  if (!collectives) return collectives.error();
  facts.collectives = std::move(collectives->items);
  auto links = client.ask<api::MeasuredLinkList>({.path = "/v1/links"});
  if (!links) return links.error();
  facts.links = std::move(links->items);
  facts.workers = ask_workers(session, *workers);
  return facts;
}

ExitCode print(std::vector<Finding> const& findings, ClusterFacts const& facts, Session const& session) {
  auto const problems =
      static_cast<std::size_t>(std::ranges::count(findings, Finding::Level::problem, &Finding::level));
  for (auto const& [level, about, what, advice] : findings) {
    auto const* const name = level == Finding::Level::problem ? "problem" : "note";
    if (session.json)
      session.out << boost::json::serialize(
                         boost::json::object{{"level", name}, {"about", about}, {"what", what}, {"advice", advice}})
                  << '\n';
    else
      session.out << name << ": " << about << ": " << what << ".\n    " << advice << ".\n";
  }
  if (session.json)
    session.out << boost::json::serialize(boost::json::object{{"healthy", problems == 0},
                                                              {"problems", problems},
                                                              {"notes", findings.size() - problems},
                                                              {"workers", facts.workers.size()}})
                << '\n';
  else if (problems == 0)
    session.out << "healthy: " << format_count(facts.workers.size(), "worker") << ", "
                << format_count(facts.groups.size(), "group") << ", version " << facts.version << "\n";
  else
    session.out << format_count(problems, "problem") << "\n";
  return problems == 0 ? ExitCode::ok : ExitCode::failed;
}

ExitCode examine(Session const& session) {
  auto const facts = read_facts(session);
  if (facts) return print(diagnose(*facts), *facts, session);
  static_cast<void>(report(session, facts.error()));
  return ExitCode::usage;  // 2: no service could be asked
}

}  // namespace

void add_doctor(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("doctor", "Ask every service how it is, and say what is wrong and what to do");
  command.footer("Exit codes: 0 healthy, 1 there are problems, 2 it could not be asked.");
  commands.bind(command, [](Session const& session) { return examine(session); });
}

}  // namespace chorus::cli
