// simulate: shows the times of plans on a topology that need not exist; needs no coordinator.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <limits>
#include <memory>
#include <ostream>

#include "base/logging/progress_line.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/core/op.hpp"
#include "collectives/plan/spec.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/output/long_work.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/text/format.hpp"
#include "server/planning/explain.hpp"
#include "server/planning/simulations.hpp"

namespace chorus::cli {
namespace {

constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

boost::json::object to_json(api::SimulationAnswer const& answer, api::SimulatedPlan const& plan) {
  boost::json::object line{{"op", answer.op},
                           {"algorithm", plan.algorithm},
                           {"root", plan.root},
                           {"arity", plan.arity},
                           {"algorithm_shape", boost::json::value_from(plan.algorithm_shape)},
                           {"ranks", answer.ranks},
                           {"bytes", answer.bytes},
                           {"topology", answer.topology},
                           {"seconds", plan.seconds},
                           {"rounds", plan.rounds},
                           {"bytes_per_rank", plan.bytes_per_rank},
                           {"bottleneck", plan.bottleneck}};
  if (plan.wire_bytes) {
    line["wire_bytes"] = *plan.wire_bytes;
    line["compression_ratio"] = planning::compression_ratio(answer.bytes, *plan.wire_bytes);
  }
  if (answer.order) line["order"] = boost::json::value_from(*answer.order);
  if (answer.stretch)
    line["stretch"] = {{"arrival_order", answer.stretch->arrival_order}, {"assigned", answer.stretch->assigned}};
  return line;
}

void print_answer(api::SimulationAnswer const& answer, std::ostream& out) {
  out << answer.op << " of " << format_bytes(answer.bytes) << " over " << format_count(answer.ranks, "rank") << ", "
      << answer.topology << "; the least is " << format_count(answer.lower_bound.rounds, "round") << " and "
      << format_bytes(answer.lower_bound.bytes_per_rank) << " sent per rank\n";
  if (answer.order && answer.stretch) out << "order " << format_order(*answer.order, *answer.stretch) << '\n';
  out << '\n';
  Table table({{"ALGORITHM"},
               {"TIME", Align::right},
               {"ROUNDS", Align::right},
               {"SENT PER RANK", Align::right},
               {"BOTTLENECK"}});
  for (auto const& plan : answer.items)
    table.add({format_algorithm(plan.algorithm, plan.root, plan.arity, plan.algorithm_shape),
               format_seconds(plan.seconds), std::to_string(plan.rounds),
               format_bytes(plan.bytes_per_rank) + (plan.wire_bytes ? " of codes" : ""), plan.bottleneck});
  table.print(out);
}

struct SimulateOptions {
  api::SimulationRequest request;
  model::Constants constants = model::Constants::defaults();
  bool table = false;
};

ExitCode simulate(SimulateOptions const& options, Session const& session) {
  logging::ProgressLine progress;
  auto const answer = planning::simulate(options.request, options.constants, no_limit,
                                         [&progress](std::string_view algorithm, std::size_t done, std::size_t all) {
                                           progress.show(std::string(algorithm) + ", " + std::to_string(done) + " of " +
                                                         format_count(all, "algorithm") + " simulated");
                                         });
  progress.clear();
  // Only the command line can be wrong.
  if (answer.has_error()) return report_usage(session, answer.error().detail);
  if (gives_lines(session, options.table))
    for (auto const& plan : answer->items)
      session.out << boost::json::serialize(to_json(*answer, plan)) << '\n' << std::flush;
  else
    print_answer(*answer, session.out);
  return ExitCode::ok;
}

}  // namespace

void add_simulate(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand(
      "simulate", "Show how long plans would take on a topology that need not exist; no coordinator needed");
  auto const options = std::make_shared<SimulateOptions>();
  auto* const request = &options->request;
  add_number(command, "--ranks", request->ranks, 1, plan::max_ranks,
             "as many as the topology has; without one: hosts of one worker in one rack");
  command
      .add_option("--topology", request->topology,
                  "flat:P, hosts:HxW, racks:RxHxW, zones:ZxRxHxW or regions:GxZxRxHxW, and overrides behind it: "
                  "\"hosts:4x8;rack=25us,25Gbit/s;uplink_host=50Gbit/s\"")
      ->type_name("SPEC");
  add_links(command, request->links);
  command.add_option("--op", request->op, "the operation")
      ->check(one_of(all_ops))
      ->type_name("OP")
      ->capture_default_str();
  add_table(command, options->table);
  add_bytes(command, "--bytes", request->bytes,
            "of the whole vector: one rank's tensor, or all that is gathered or scattered")
      ->required();
  command.add_option("--dtype", request->dtype, "its elements")
      ->check(one_of(all_dtypes))
      ->type_name("DTYPE")
      ->capture_default_str();
  command.add_option("--algorithm", request->algorithm, "by name; auto or all: every one, the fastest first")
      ->type_name("NAME")
      ->capture_default_str();
  add_number(command, "--root", request->root, 0, plan::max_ranks - 1,
             "the root of an operation or algorithm that has one; with --links its row");
  add_number(command, "--arity", request->arity, 1, plan::max_ranks, "children per node of a tree, base of a bcube");
  add_algorithm_shape(command, request->algorithm_shape);
  command.add_flag("--reproducible", request->reproducible, "only algorithms that reduce in the order of the workers");
  add_compression(command, request->compression, false);
  add_constants(command, options->constants);
  commands.bind(command, [options](Session const& session) { return simulate(*options, session); });
}

}  // namespace chorus::cli
