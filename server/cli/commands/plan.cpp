// plan: shows the chosen algorithm, the reason and the cost. With --group the coordinator answers; with --ranks or
// --locality the group exists only on paper, and this process answers without a coordinator.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/plan/text/text.hpp"
#include "http/api/collectives/groups.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/plans/local_plan.hpp"
#include "server/cli/text/format.hpp"

namespace chorus::cli {
namespace {

struct PlanOptions {
  std::string group;
  std::vector<std::string> localities;
  api::PlanRequest request;
  model::Constants constants = model::Constants::defaults();  // for groups on paper
  bool text = false;
  std::optional<std::uint32_t> rank;
};

Reply<Planned> plan_for_group(api::PlanRequest const& request, Client const& client) {
  auto answer = client.ask<api::PlanAnswer>({.method = "POST", .path = "/v1/plans", .body = http::encode(request)});
  if (!answer) return answer.error();
  auto const group = client.ask<api::Group>({.path = "/v1/groups/" + percent_encode(*request.group)});
  if (!group) return group.error();
  return Planned{std::move(*answer), static_cast<std::uint32_t>(group->members.size())};
}

void print_answer(Planned const& planned, api::PlanRequest const& request, std::ostream& out) {
  auto const& answer = planned.answer;
  out << request.op << " of " << format_bytes(request.bytes) << ' ' << request.dtype << " over "
      << format_count(planned.ranks, "rank") << ": "
      << format_algorithm(answer.algorithm, answer.root, answer.arity, answer.algorithm_shape) << ", predicted "
      << format_seconds(answer.predicted_seconds) << '\n'
      << "  reason       " << answer.reason << '\n'
      << "  lower bound  " << format_count(answer.lower_bound.rounds, "round") << ", "
      << format_bytes(answer.lower_bound.bytes_per_rank) << " per rank\n"
      << "  verified     " << (answer.verified ? "" : "no: ") << answer.verification << '\n';
  if (answer.order && answer.stretch) out << "  order        " << format_order(*answer.order, *answer.stretch) << '\n';
  out << '\n';
  Table table({{"ALGORITHM"}, {"PREDICTED", Align::right}, {"ROUNDS", Align::right}, {"SENT PER RANK", Align::right}});
  for (auto const& line : answer.considered)
    table.add({format_algorithm(line.algorithm, line.root, line.arity, line.algorithm_shape),
               format_seconds(line.predicted_seconds), std::to_string(line.rounds), format_bytes(line.bytes_per_rank)});
  table.print(out);
}

ExitCode print_program(Planned const& planned, PlanOptions const& options, Session const& session) {
  auto const program = program_of(planned.answer, *parse_op(options.request.op), planned.ranks, *options.rank);
  if (!program) return report_usage(session, program.error().detail);
  auto const text = plan::to_text(*program);
  if (session.json)
    session.out << boost::json::serialize(boost::json::object{{"rank", *options.rank}, {"text", text}}) << '\n';
  else
    session.out << text;
  return ExitCode::ok;
}

ExitCode print(Planned const& planned, PlanOptions const& options, api::PlanRequest const& request,
               Session const& session) {
  if (options.text) return print_program(planned, options, session);
  if (session.json)
    session.out << http::encode(planned.answer) << '\n';
  else
    print_answer(planned, request, session.out);
  return ExitCode::ok;
}

ExitCode plan_command(PlanOptions const& options, Session const& session) {
  auto request = options.request;
  bool const on_paper = request.ranks || request.topology || request.links || !options.localities.empty();
  if (on_paper == !options.group.empty())
    return report_usage(session, "plan takes either --group, or --ranks, --locality, --topology or --links");
  if (options.text != options.rank.has_value()) return report_usage(session, "--text and --rank go together");
  if (!options.localities.empty()) request.localities = options.localities;
  if (!options.group.empty()) request.group = options.group;

  if (on_paper) {
    auto const planned = plan_locally(request, options.constants);
    // Only the command line can be wrong.
    return planned ? print(*planned, options, request, session) : report_usage(session, planned.error().detail);
  }
  auto const planned = plan_for_group(request, Client(session));
  return planned ? print(*planned, options, request, session) : report(session, planned.error());
}

}  // namespace

void add_plan(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("plan", "Show which algorithm would run, why, and what it costs; nothing runs");
  auto const options = std::make_shared<PlanOptions>();
  auto& request = options->request;
  command.add_option("--group", options->group, "a group that stands; the coordinator answers")->type_name("NAME");
  add_number(command, "--ranks", request.ranks, 1, local_ranks_limit, "a group of N on paper; no coordinator needed");
  command
      .add_option("--locality", options->localities,
                  "of the next rank on paper, e.g. region=eu,host=a; repeat per rank")
      ->allow_extra_args(false)
      ->type_name("PLACE");
  command
      .add_option("--topology", request.topology,
                  "of a group on paper, as in simulate: \"hosts:4x8;rack=25us,25Gbit/s\"")
      ->type_name("SPEC");
  add_links(command, request.links);
  command.add_option("--op", request.op, "the operation")
      ->check(one_of(all_ops))
      ->type_name("OP")
      ->capture_default_str();
  add_bytes(command, "--bytes", request.bytes,
            "of the whole vector: one rank's tensor, or all that is gathered or scattered")
      ->required();
  command.add_option("--dtype", request.dtype, "its elements")
      ->check(one_of(all_dtypes))
      ->type_name("DTYPE")
      ->capture_default_str();
  command.add_option("--algorithm", request.algorithm, "by name, or auto")->type_name("NAME")->capture_default_str();
  add_number(command, "--root", request.root, 0, plan::max_ranks - 1,
             "the root of an operation or algorithm that has one; with --links its row");
  add_number(command, "--arity", request.arity, 1, plan::max_ranks, "children per node of a tree, base of a bcube");
  add_algorithm_shape(command, request.algorithm_shape);
  command.add_flag("--reproducible", request.reproducible, "only algorithms that reduce in the order of the workers");
  add_compression(command, request.compression);
  add_constants(command, options->constants);
  command.add_flag("--text", options->text, "print the program of one rank in text form");
  add_number(command, "--rank", options->rank, 0, plan::max_ranks - 1, "the rank whose program --text prints");
  commands.bind(command, [options](Session const& session) { return plan_command(*options, session); });
}

}  // namespace chorus::cli
