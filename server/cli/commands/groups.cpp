// groups: shows the ranks of the members, and the chosen algorithms by size.
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "collectives/plan/spec.hpp"
#include "http/api/collectives/groups.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/text/format.hpp"

namespace chorus::cli {
namespace {

std::string path_of(std::string const& group) { return "/v1/groups/" + percent_encode(group); }

void print_members(std::vector<api::Member> const& members, std::ostream& out) {
  std::vector<Column> columns{{"RANK", Align::right}, {"WORKER"}, {"LOCALITY"}, {"URL"}};
  // Every member has a role in the same algorithms, in the same order.
  if (!members.empty())
    for (auto const& role : members.front().roles) columns.push_back({"ROLE IN " + role.algorithm});
  Table table(columns);
  for (auto const& member : members) {
    std::vector<std::string> cells{std::to_string(member.rank), member.worker, format_locality(member.locality),
                                   member.url};
    for (auto const& role : member.roles) cells.push_back(format_role(role));
    cells.resize(columns.size());
    table.add(std::move(cells));
  }
  table.print(out);
}

void print_selection(api::Group const& group, std::ostream& out) {
  Table table({{"OP"}, {"UP TO", Align::right}, {"ALGORITHM"}, {"WHY"}});
  for (auto const& line : group.selection)
    table.add({line.op, line.max_bytes ? format_bytes(*line.max_bytes) : "any",
               format_algorithm(line.algorithm, line.root, line.arity, line.algorithm_shape), line.reason});
  table.print(out);
}

void print_group(api::Group const& group, std::ostream& out) {
  bool const is_measured = group.order == "measured";
  out << "group " << group.name << ", epoch " << group.epoch << ": " << group.state << ", "
      << format_count(group.members.size(), "rank") << ", ring stretch " << format_decimal(group.stretch.assigned, 2)
      << (is_measured ? " over measured links (" : " (") << format_decimal(group.stretch.arrival_order, 2)
      << (is_measured ? " by locality)\n" : " in the order of arrival)\n");
  if (!group.lost.empty()) out << "lost: " << join(group.lost, ", ") << '\n';
  out << '\n';
  print_members(group.members, out);
  if (group.selection.empty()) return;
  out << '\n';
  print_selection(group, out);
}

ExitCode answer(Reply<api::Group> const& group, Session const& session) {
  if (!group) return report(session, group.error());
  if (session.json)
    session.out << http::encode(*group) << '\n';
  else
    print_group(*group, session.out);
  return ExitCode::ok;
}

ExitCode list(Session const& session) {
  auto const groups = Client(session).list<api::GroupList>("/v1/groups", groups_per_page);
  if (!groups) return report(session, groups.error());
  if (session.json) {
    for (auto const& group : *groups) session.out << http::encode(group) << '\n';
    return ExitCode::ok;
  }
  Table table(
      {{"GROUP"}, {"EPOCH", Align::right}, {"STATE"}, {"RANKS", Align::right}, {"STRETCH", Align::right}, {"LOST"}});
  for (auto const& group : *groups)
    table.add({group.name, std::to_string(group.epoch), group.state, std::to_string(group.members.size()),
               format_decimal(group.stretch.assigned, 2), join(group.lost, ",")});
  table.print(session.out);
  return ExitCode::ok;
}

struct Shown {
  std::string name;
  std::optional<std::uint32_t> rank;
};

ExitCode show(Shown const& shown, Session const& session) {
  if (!shown.rank) return answer(Client(session).ask<api::Group>({.path = path_of(shown.name)}), session);
  auto const path = path_of(shown.name) + "/members/" + std::to_string(*shown.rank);
  auto const member = Client(session).ask<api::Member>({.path = path});
  if (!member) return report(session, member.error());
  if (session.json)
    session.out << http::encode(*member) << '\n';
  else
    print_members({*member}, session.out);
  return ExitCode::ok;
}

struct CreateOptions {
  std::string name;
  std::optional<std::uint32_t> size;
  std::vector<std::string> workers;
  std::optional<std::string> order;
};

// The coordinator takes at most a minute to have all pairs measured.
constexpr std::chrono::seconds measuring_patience{90};

ExitCode create(CreateOptions const& options, Session const& session) {
  if (options.size.has_value() == !options.workers.empty())
    return report_usage(session, "groups create takes exactly one of --size and --workers");
  api::GroupRequest body;
  body.size = options.size;
  if (!options.workers.empty()) body.workers = options.workers;
  body.order = options.order;
  Request request{.method = "PUT", .path = path_of(options.name), .body = http::encode(body)};
  request.fields.emplace_back("Idempotency-Key", draw_key());
  request.repeatable = true;
  if (options.order == "measured") request.patience = measuring_patience;
  return answer(Client(session).ask<api::Group>(request), session);
}

ExitCode remove(std::string const& name, Session const& session) {
  auto const done = Client(session).send({.method = "DELETE", .path = path_of(name)});
  if (!done) return report(session, done.error());
  if (session.json)
    session.out << boost::json::serialize(boost::json::object{{"deleted", name}}) << '\n';
  else
    session.out << "group " << name << " is deleted\n";
  return ExitCode::ok;
}

void add_create(CLI::App& groups, Commands& commands) {
  auto& command = *groups.add_subcommand("create", "Make a group, or a new epoch of it; ranks are assigned");
  auto const options = std::make_shared<CreateOptions>();
  command.add_option("NAME", options->name, "name of the group")->required()->type_name("");
  add_number(command, "--size", options->size, 1, plan::max_ranks, "any N ready workers");
  add_names(command, "--workers", options->workers, "these workers, in any order unless --order listed")
      ->type_name("ID,ID,...");
  command
      .add_option("--order", options->order,
                  "what ranks follow: locality, the links between the members, which are measured first, or --workers")
      ->type_name("locality|measured|listed");
  commands.bind(command, [options](Session const& session) { return create(*options, session); });
}

}  // namespace

void add_groups(CLI::App& root, Commands& commands) {
  auto& groups = *root.add_subcommand("groups", "List the groups; show, create or delete one");
  groups.require_subcommand(0, 1);
  commands.bind(groups, list);
  add_create(groups, commands);

  auto const shown = std::make_shared<Shown>();
  auto& show_command = *groups.add_subcommand("show", "Show ranks, roles, stretch and the selection table of a group");
  show_command.add_option("NAME", shown->name, "name of the group")->required()->type_name("");
  add_number(show_command, "--rank", shown->rank, 0, plan::max_ranks - 1,
             "only this member, with its roles, which large groups do not show");
  commands.bind(show_command, [shown](Session const& session) { return show(*shown, session); });

  auto const deleted = std::make_shared<std::string>();
  auto& delete_command = *groups.add_subcommand("delete", "Delete a group; its workers stay");
  delete_command.add_option("NAME", *deleted, "name of the group")->required()->type_name("");
  commands.bind(delete_command, [deleted](Session const& session) { return remove(*deleted, session); });
}

}  // namespace chorus::cli
