// verify: proves the plans of this build; needs no coordinator.
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "collectives/algorithms/catalogue.hpp"
#include "server/cli/commands.hpp"
#include "server/cli/options.hpp"
#include "server/cli/verify_all.hpp"

namespace chorus::cli {
namespace {

// The work grows with the cube of it: 64 takes seconds, 256 minutes, 1024 hours.
constexpr std::uint32_t ranks_limit = 1024;

void print_failure(plan::Spec const& spec, std::string const& failure, Session const& session) {
  if (!session.json) {
    session.out << "failed: " << plan::to_string(spec) << ": " << failure << '\n';
    return;
  }
  boost::json::object const object{{"op", name(spec.op)}, {"algorithm", spec.algorithm}, {"ranks", spec.ranks},
                                   {"root", spec.root},   {"arity", spec.arity},         {"in_place", spec.in_place},
                                   {"failure", failure}};
  session.out << boost::json::serialize(object) << '\n';
}

void print_totals(VerifyTotals const& totals, std::uint32_t max_ranks, Session const& session) {
  if (session.json) {
    boost::json::object const object{{"plans", totals.plans}, {"failed", totals.failed}, {"max_ranks", max_ranks}};
    session.out << boost::json::serialize(object) << '\n';
  } else if (totals.failed == 0) {
    session.out << "all " << totals.plans << " plans for 1 to " << max_ranks << " ranks are correct\n";
  } else {
    session.out << totals.failed << " of " << totals.plans << " plans for 1 to " << max_ranks << " ranks are wrong\n";
  }
}

ExitCode verify(std::uint32_t max_ranks, Session const& session) {
  bool const terminal = isatty(STDERR_FILENO) != 0;
  char const* const clear_line = terminal ? "\r\x1b[K" : "";
  VerifyWatcher const watcher{.progress =
                                  [&](std::string const& algorithm, std::uint32_t ranks, VerifyTotals const& so_far) {
                                    if (terminal)
                                      session.err << clear_line << algorithm << ", " << format_count(ranks, "rank")
                                                  << ": " << so_far.plans << " plans, " << so_far.failed << " failed"
                                                  << std::flush;
                                  },
                              .failure =
                                  [&](plan::Spec const& spec, std::string const& failure) {
                                    session.err << clear_line << std::flush;
                                    print_failure(spec, failure, session);
                                  }};
  auto const totals = verify_all(algorithms::all(), max_ranks, watcher);
  session.err << clear_line << std::flush;
  print_totals(totals, max_ranks, session);
  return totals.failed == 0 ? ExitCode::ok : ExitCode::failed;
}

}  // namespace

void add_verify(CLI::App& root, Commands& commands) {
  auto& command =
      *root.add_subcommand("verify", "Prove every plan of this build by symbolic execution; no coordinator needed");
  auto const max_ranks = std::make_shared<std::uint32_t>(16);
  add_number(command, "--max-ranks", *max_ranks, 1, ranks_limit, "up to this many ranks")->default_str("16");
  commands.bind(command, [max_ranks](Session const& session) { return verify(*max_ranks, session); });
}

}  // namespace chorus::cli
