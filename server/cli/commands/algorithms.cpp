// algorithms: lists the algorithms, and writes the pages about them. crossover: shows the winners by ranks and size.
// Both need no coordinator.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>

#include "collectives/algorithms/catalogue.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/files/part_file.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/text/errc.hpp"
#include "server/planning/algorithm_page.hpp"
#include "server/planning/crossover.hpp"
#include "server/planning/picture.hpp"

namespace chorus::cli {
namespace {

struct AlgorithmsOptions {
  std::string op;
  bool markdown = false;
  std::string pictures;
};

// Replaces a file at once: no partial file has its name.
Status write_file(std::filesystem::path const& path, std::string const& text) {
  if (auto const place = check_place(path.string()); !place) return place;
  auto const beside = std::filesystem::path(path).concat(".new");
  std::error_code error;
  std::ofstream file(beside, std::ios::binary);
  file << text;
  file.close();
  if (file) std::filesystem::rename(beside, path, error);
  if (file && !error) return ok();
  std::filesystem::remove(beside, error);
  return Error(CliErrc::bad_value, "cannot write " + path.string());
}

std::vector<Op> ops_to_list(std::string const& wanted) {
  if (auto const op = parse_op(wanted)) return {*op};
  return {all_ops.begin(), all_ops.end()};
}

bool is_reproducible(plan::Algorithm const& algorithm, Op op) {
  return reduces(op) && algorithm.in_worker_order != nullptr &&
         algorithm.in_worker_order({.op = op, .algorithm = std::string(algorithm.name), .ranks = 8});
}

void print_list(std::vector<Op> const& ops, Session const& session) {
  Table table({{"OPERATION"}, {"ALGORITHM"}, {"TAKES"}, {"SUMMARY"}});
  for (auto const op : ops)
    for (auto const* algorithm : algorithms::all_for(op)) {
      bool const has_root = algorithm->rooted || is_rooted(op), has_shape = algorithm->shapes != nullptr;
      if (session.json) {
        boost::json::object const object{{"op", name(op)},
                                         {"algorithm", algorithm->name},
                                         {"root", has_root},
                                         {"arity", algorithm->uses_arity},
                                         {"shape", has_shape},
                                         {"reproducible", is_reproducible(*algorithm, op)},
                                         {"summary", algorithm->summary}};
        session.out << boost::json::serialize(object) << '\n';
        continue;
      }
      std::string takes;
      for (auto const& [given, word] :
           {std::pair(has_root, "root"), std::pair(algorithm->uses_arity, "arity"), std::pair(has_shape, "shape")})
        if (given) takes += (takes.empty() ? "" : ", ") + std::string(word);
      table.add({std::string(name(op)), std::string(algorithm->name), takes, std::string(algorithm->summary)});
    }
  if (!session.json) table.print(session.out);
}

ExitCode draw_all(std::string const& directory, Session const& session) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (auto const* algorithm : algorithms::all()) {
    auto const path = std::filesystem::path(directory) / (std::string(algorithm->name) + ".svg");
    auto const spec = planning::spec_to_draw(*algorithm);
    if (auto const status = write_file(path, planning::picture(*algorithm, spec)); !status)
      return report_usage(session, status.error().detail);
  }
  return ExitCode::ok;
}

ExitCode list(AlgorithmsOptions const& options, Session const& session) {
  if (!options.pictures.empty()) return draw_all(options.pictures, session);
  if (options.markdown)
    session.out << planning::algorithm_page(model::Constants::defaults());
  else
    print_list(ops_to_list(options.op), session);
  return ExitCode::ok;
}

struct CrossoverOptions {
  std::string op = "all_reduce";
  planning::CrossoverRequest request;
  model::Constants constants = model::Constants::defaults();
  std::string svg;
};

void print_winners(planning::Crossover const& crossover, Session const& session) {
  Table table({{"RANKS", Align::right},
               {"BYTES", Align::right},
               {"FASTEST"},
               {"TIME", Align::right},
               {"THEN"},
               {"TIME", Align::right}});
  for (std::size_t column = 0; column < crossover.ranks.size(); ++column)
    for (std::size_t row = 0; row < crossover.bytes.size(); ++row) {
      auto const& winner = crossover.winners[column][row];
      auto const ranks = crossover.ranks[column];
      auto const bytes = crossover.bytes[row];
      if (session.json) {
        boost::json::object const object{{"op", name(crossover.op)},
                                         {"ranks", ranks},
                                         {"bytes", bytes},
                                         {"algorithm", winner.algorithm},
                                         {"seconds", winner.seconds},
                                         {"second", winner.second},
                                         {"second_seconds", winner.second_seconds}};
        session.out << boost::json::serialize(object) << '\n';
        continue;
      }
      table.add({std::to_string(ranks), format_bytes(bytes), winner.algorithm, format_seconds(winner.seconds),
                 winner.second, winner.second.empty() ? "" : format_seconds(winner.second_seconds)});
    }
  if (!session.json) table.print(session.out);
}

ExitCode find_crossover(CrossoverOptions const& options, Session const& session) {
  auto request = options.request;
  request.op = *parse_op(options.op);
  auto const crossover = planning::crossover(request, options.constants);
  if (!crossover) return report_usage(session, crossover.error().detail);
  if (crossover->ranks.empty()) return report_usage(session, "--max-ranks leaves no whole host");
  if (options.svg.empty()) {
    print_winners(*crossover, session);
    return ExitCode::ok;
  }
  auto const status = write_file(options.svg, planning::to_svg(*crossover));
  return status ? ExitCode::ok : report_usage(session, status.error().detail);
}

}  // namespace

void add_algorithms(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("algorithms", "List every operation's algorithms; no coordinator needed");
  auto const options = std::make_shared<AlgorithmsOptions>();
  command.add_option("--op", options->op, "only those that do this operation")->check(one_of(all_ops))->type_name("OP");
  command.add_flag("--markdown", options->markdown,
                   "print docs/reference/algorithms.md instead: steps, bytes, formulas, who wins");
  command.add_option("--pictures", options->pictures, "draw every algorithm into this directory instead")
      ->type_name("DIRECTORY");
  commands.bind(command, [options](Session const& session) { return list(*options, session); });
}

void add_crossover(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand(
      "crossover", "Show which algorithm is the fastest for how many ranks and bytes; no coordinator needed");
  auto const options = std::make_shared<CrossoverOptions>();
  command.add_option("--op", options->op, "the operation")
      ->check(one_of(all_ops))
      ->type_name("OP")
      ->capture_default_str();
  command
      .add_option("--topology", options->request.placement,
                  "flat: every rank on a host of its own, hosts:W: W on each, host: all on one; overrides behind it "
                  "as in simulate")
      ->type_name("PLACEMENT")
      ->capture_default_str();
  add_number(command, "--max-ranks", options->request.ranks_max, 2, 4096, "2, 4, 8, ... up to this many ranks")
      ->capture_default_str();
  add_constants(command, options->constants);
  command.add_option("--svg", options->svg, "draw it into this file instead of printing it")->type_name("FILE");
  commands.bind(command, [options](Session const& session) { return find_crossover(*options, session); });
}

}  // namespace chorus::cli
