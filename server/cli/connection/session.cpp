#include "server/cli/connection/session.hpp"

#include <ostream>

namespace chorus::cli {

ExitCode report(Session const& session, Failure const& failure) {
  auto const& problem = failure.problem;
  if (session.json) {
    session.out << http::to_json(problem) << '\n';
  } else {
    if (failure.is_local) {
      session.err << "error: " << problem.detail << '\n';
      return ExitCode::failed;
    }
    auto const& kind = http::kind(problem.code);
    session.err << "error: " << kind.title;
    if (!problem.detail.empty()) session.err << ": " << problem.detail;
    session.err << " (" << kind.name << ")\n";
    if (problem.code == http::ProblemCode::unauthorized)
      session.err << "  --token-file FILE (or CHORUS_TOKEN_FILE) names the file with your token\n";
    for (auto const& error : problem.errors)
      session.err << "  " << (error.pointer.empty() ? "" : error.pointer + ": ") << error.detail << '\n';
  }
  return failure.reachable ? ExitCode::failed : ExitCode::unreachable;
}

ExitCode report(Session const& session, http::Problem const& problem) { return report(session, Failure{problem}); }

ExitCode report_usage(Session const& session, std::string_view what) {
  session.err << "error: " << what << '\n';
  return ExitCode::usage;
}

}  // namespace chorus::cli
