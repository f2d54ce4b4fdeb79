// verify: proves the plans of this build; needs no coordinator.
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "base/logging/progress_line.hpp"
#include "collectives/algorithms/catalogue.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/output/long_work.hpp"
#include "server/cli/plans/verify_all.hpp"

namespace chorus::cli {
namespace {

// The work grows with the cube of the limit: 64 takes seconds, 256 minutes. --ranks takes single large numbers.
constexpr std::uint32_t ranks_limit = 256;
constexpr std::uint32_t single_ranks_limit = 4096;

struct VerifyOptions {
  std::uint32_t max_ranks = 16;
  std::vector<std::uint32_t> ranks;  // used instead of the limit
  bool table = false;
};

void print_failure(plan::Spec const& spec, std::string const& failure, VerifyOptions const& options,
                   Session const& session) {
  if (!gives_lines(session, options.table)) {
    session.out << "failed: " << plan::to_string(spec) << ": " << failure << '\n';
    return;
  }
  boost::json::object const object{{"op", name(spec.op)}, {"algorithm", spec.algorithm}, {"ranks", spec.ranks},
                                   {"root", spec.root},   {"arity", spec.arity},         {"in_place", spec.in_place},
                                   {"failure", failure}};
  session.out << boost::json::serialize(object) << '\n';
}

void print_totals(VerifyTotals const& totals, VerifyOptions const& options, Session const& session) {
  auto const max_ranks = options.ranks.empty() ? options.max_ranks : *std::ranges::max_element(options.ranks);
  auto const numbers = options.ranks.empty() ? "1 to " + std::to_string(max_ranks) + " ranks" : "these ranks";
  if (gives_lines(session, options.table)) {
    boost::json::object const object{{"plans", totals.plans}, {"failed", totals.failed}, {"max_ranks", max_ranks}};
    session.out << boost::json::serialize(object) << '\n';
  } else if (totals.failed == 0) {
    session.out << "all " << totals.plans << " plans for " << numbers << " are correct\n";
  } else {
    session.out << totals.failed << " of " << totals.plans << " plans for " << numbers << " are wrong\n";
  }
}

ExitCode verify(VerifyOptions const& options, Session const& session) {
  logging::ProgressLine line;
  VerifyWatcher const watcher{.progress =
                                  [&](std::string const& algorithm, std::uint32_t ranks, VerifyTotals const& so_far) {
                                    line.show(algorithm + ", " + format_count(ranks, "rank") + ": " +
                                              std::to_string(so_far.plans) + " plans, " +
                                              std::to_string(so_far.failed) + " failed");
                                  },
                              .failure =
                                  [&](plan::Spec const& spec, std::string const& failure) {
                                    line.clear();
                                    print_failure(spec, failure, options, session);
                                  }};
  auto ranks = options.ranks;
  for (std::uint32_t p = 1; options.ranks.empty() && p <= options.max_ranks; ++p) ranks.push_back(p);
  auto const totals = verify_all(algorithms::all(), ranks, watcher);
  line.clear();
  print_totals(totals, options, session);
  return totals.failed == 0 ? ExitCode::ok : ExitCode::failed;
}

}  // namespace

void add_verify(CLI::App& root, Commands& commands) {
  auto& command =
      *root.add_subcommand("verify", "Prove every plan of this build by symbolic execution; no coordinator needed");
  auto const options = std::make_shared<VerifyOptions>();
  auto* const max_ranks =
      add_number(command, "--max-ranks", options->max_ranks, 1, ranks_limit, "up to this many ranks")
          ->default_str("16");
  add_numbers<std::uint32_t>(command, "--ranks", options->ranks, 1, single_ranks_limit,
                             "these numbers of ranks instead, like 100,127,1000")
      ->excludes(max_ranks)
      ->type_name("P,...");
  add_table(command, options->table);
  commands.bind(command, [options](Session const& session) { return verify(*options, session); });
}

}  // namespace chorus::cli
