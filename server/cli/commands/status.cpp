// status: is everything well, and if not, what is wrong?
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "http/api/cluster/status.hpp"
#include "http/api/collectives/collectives.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/connection/coordinators.hpp"
#include "server/cli/text/format.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

using Answers = std::vector<CoordinatorAnswer>;

boost::json::array to_json(Answers const& answers) {
  boost::json::array all;
  for (auto const& [url, state, leader, why] : answers) {
    boost::json::object one{{"url", url}, {"state", state}};
    if (!leader.empty()) one["leader"] = leader;
    if (!why.empty()) one["why"] = why;
    all.push_back(std::move(one));
  }
  return all;
}

void print_json(api::CoordinatorStatus const& status, Answers const& answers, Session const& session) {
  boost::json::array reasons;
  for (auto const& reason : status.verdict.reasons) reasons.push_back({{"level", reason.level}, {"text", reason.text}});
  boost::json::object object{{"coordinator", session.coordinator},
                             {"workers", status.workers},
                             {"ready", status.ready},
                             {"groups", status.groups},
                             {"degraded", status.degraded},
                             {"running", status.running},
                             {"level", status.verdict.level},
                             {"verdict", status.verdict.text},
                             {"reasons", std::move(reasons)}};
  if (status.coordinator) object["lead"] = boost::json::parse(http::encode(status)).at("coordinator");
  if (answers.size() > 1) object["coordinators"] = to_json(answers);
  session.out << boost::json::serialize(object) << '\n';
}

std::string describe(api::StoreStatus const& store) {
  if (store.kind == "none") return "none, a restart forgets everything";
  auto text = store.cluster ? "etcd cluster " + *store.cluster + " at " + store.place : "journal " + store.place;
  if (store.bytes > 0) text += ", " + format_bytes(store.bytes);
  if (store.last_write_s) text += ", last write " + format_seconds(*store.last_write_s);
  if (store.failure) text += ", cannot be written";
  return text;
}

void print_lead(api::LeadStatus const& lead, Session const& session) {
  if (lead.url) session.out << "leader: " << *lead.url << " since " << lead.since << '\n';
  session.out << "store: " << describe(lead.store) << '\n';
}

void print_answers(Answers const& answers, std::ostream& out) {
  for (auto const& answer : answers) out << "coordinator " << format_answer(answer) << '\n';
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
  auto const answers = split_services(session.coordinator).size() > 1 ? ask_coordinators(session) : Answers();
  if (!status) {
    if (!session.json) print_answers(answers, session.err);
    return report(session, status.error());
  }
  if (session.json) {
    print_json(*status, answers, session);
    return ExitCode::ok;
  }
  session.out << status->verdict.text << '\n';
  for (auto const& reason : status->verdict.reasons) session.out << reason.level << ": " << reason.text << '\n';
  if (status->coordinator) print_lead(*status->coordinator, session);
  print_answers(answers, session.out);
  if (status->running == 0) return ExitCode::ok;
  auto const collectives = client.list<api::CollectiveList>("/v1/collectives", collectives_per_page);
  if (!collectives) return report(session, collectives.error());
  print_running(*collectives, session);
  return ExitCode::ok;
}

}  // namespace

void add_status(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand(
      "status", "Say whether all is well, what is not, which coordinator leads and where its state is kept");
  commands.bind(command, status);
}

}  // namespace chorus::cli
