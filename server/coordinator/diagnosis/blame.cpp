#include "server/coordinator/diagnosis/blame.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "collectives/core/assert.hpp"

namespace chorus::coordinator {
namespace {

using Kind = RankEnding::Kind;
using http::Problem;
using http::ProblemCode;

std::string title(RankEnding const& ending) {
  return "rank " + std::to_string(ending.rank) + " ('" + ending.worker + "')";
}

std::string titles(std::vector<std::uint32_t> const& ranks, std::span<RankEnding const> endings) {
  std::string text;
  for (auto rank : ranks)
    for (auto const& ending : endings)
      if (ending.rank == rank) text += (text.empty() ? "" : ", ") + title(ending);
  return text;
}

char const* lost_in_it(std::vector<std::uint32_t> const& ranks) {
  return ranks.size() == 1 ? " was lost during the collective" : " were lost during the collective";
}

// Reports with these codes follow from the failure of another rank.
bool is_consequence(ProblemCode code) {
  return code == ProblemCode::peer_lost || code == ProblemCode::deadline_exceeded || code == ProblemCode::cancelled;
}

// Returns the ranks that most reports with this code name, ascending.
std::vector<std::uint32_t> most_named(std::span<RankEnding const> endings, ProblemCode code) {
  std::map<std::uint32_t, std::size_t> votes;
  std::size_t most = 0;
  for (auto const& ending : endings)
    if (ending.kind == Kind::failed && ending.problem.code == code)
      for (auto rank : ending.problem.ranks)
        if (rank != ending.rank) most = std::max(most, ++votes[rank]);
  std::vector<std::uint32_t> named;
  for (auto const& [rank, count] : votes)
    if (count == most) named.push_back(rank);
  return named;
}

std::vector<std::uint32_t> ranks_of(std::span<RankEnding const> endings, Kind kind) {
  std::vector<std::uint32_t> ranks;
  for (auto const& ending : endings)
    if (ending.kind == kind) ranks.push_back(ending.rank);
  std::ranges::sort(ranks);
  return ranks;
}

RankEnding const* first(std::span<RankEnding const> endings, ProblemCode code) {
  auto const found = std::ranges::find_if(
      endings, [code](auto const& ending) { return ending.kind == Kind::failed && ending.problem.code == code; });
  return found == endings.end() ? nullptr : &*found;
}

Problem problem_of(ProblemCode code, std::string detail, std::vector<std::uint32_t> ranks) {
  Problem problem(code, std::move(detail));
  problem.ranks = std::move(ranks);
  return problem;
}

std::optional<Problem> seen_to_disappear(std::span<RankEnding const> endings) {
  auto const ranks = ranks_of(endings, Kind::lost);
  if (ranks.empty()) return std::nullopt;
  auto const evidence = std::ranges::find(endings, Kind::lost, &RankEnding::kind)->problem.detail;
  return problem_of(ProblemCode::peer_lost, titles(ranks, endings) + lost_in_it(ranks) + ": " + evidence, ranks);
}

std::optional<Problem> own_failure(std::span<RankEnding const> endings) {
  auto const found = std::ranges::find_if(
      endings, [](auto const& ending) { return ending.kind == Kind::failed && !is_consequence(ending.problem.code); });
  if (found == endings.end()) return std::nullopt;
  auto problem = found->problem;
  problem.detail = title(*found) + " failed: " + problem.detail;
  if (problem.ranks.empty()) problem.ranks = {found->rank};
  return problem;
}

// True if the rank's worker told the coordinator that its part had ended: it lives, whatever its peers report.
bool lives(std::uint32_t rank, std::span<RankEnding const> endings) {
  auto const found = std::ranges::find(endings, rank, &RankEnding::rank);
  return found != endings.end() && found->kind == Kind::failed;
}

// True for a report that only repeats a peer's report: its text contains "rank 2 (w2) reports: ".
bool is_hearsay(Problem const& problem) { return problem.detail.find(" reports: ") != std::string::npos; }

// If the accused ranks live, the network is the culprit: an accused rank's own network if several ranks have lost it,
// otherwise the link to its only accuser.
std::optional<Problem> link_between(std::vector<std::uint32_t> const& accused, std::span<RankEnding const> endings) {
  if (accused.empty() || !std::ranges::all_of(accused, [&](auto rank) { return lives(rank, endings); }))
    return std::nullopt;
  std::vector<std::uint32_t> witnesses;
  std::string said;
  for (auto const& ending : endings) {
    auto const& named = ending.problem.ranks;
    bool const is_witness =
        ending.kind == Kind::failed && ending.problem.code == ProblemCode::peer_lost && !is_hearsay(ending.problem) &&
        std::ranges::any_of(accused, [&](auto rank) { return std::ranges::find(named, rank) != named.end(); });
    if (!is_witness) continue;
    if (std::ranges::find(accused, ending.rank) == accused.end()) witnesses.push_back(ending.rank);
    said += "; " + title(ending) + " reported: " + ending.problem.detail;
  }
  auto ends = accused;
  if (witnesses.size() == 1) ends.push_back(witnesses.front());
  std::ranges::sort(ends);
  return problem_of(ProblemCode::peer_lost,
                    std::string("the network ") + (ends.size() == 1 ? "of " : "between ") + titles(ends, endings) +
                        " failed, and the coordinator has their answers" + said,
                    ends);
}

std::optional<Problem> named_by_survivors(std::span<RankEnding const> endings) {
  auto const* report = first(endings, ProblemCode::peer_lost);
  if (report == nullptr) return std::nullopt;
  auto const ranks = most_named(endings, ProblemCode::peer_lost);
  if (auto link = link_between(ranks, endings)) return link;
  auto const said = "; " + title(*report) + " reported: " + report->problem.detail;
  if (ranks.empty()) return problem_of(ProblemCode::peer_lost, "a link broke" + said, {});
  return problem_of(ProblemCode::peer_lost, titles(ranks, endings) + lost_in_it(ranks) + said, ranks);
}

std::optional<Problem> out_of_time(std::span<RankEnding const> endings) {
  auto const* report = first(endings, ProblemCode::deadline_exceeded);
  auto const silent = ranks_of(endings, Kind::silent);
  if (report == nullptr && silent.empty()) return std::nullopt;
  auto ranks = most_named(endings, ProblemCode::deadline_exceeded);
  if (ranks.empty()) ranks = silent;
  std::string detail = "the collective did not end in time";
  if (!ranks.empty()) detail += "; waited for " + titles(ranks, endings);
  if (report != nullptr) detail += "; " + title(*report) + " reported: " + report->problem.detail;
  return problem_of(ProblemCode::deadline_exceeded, detail, ranks);
}

Problem gave_up(std::span<RankEnding const> endings) {
  auto const found = std::ranges::find(endings, Kind::failed, &RankEnding::kind);
  return problem_of(ProblemCode::peer_lost, title(*found) + " gave up: " + found->problem.detail, {found->rank});
}

}  // namespace

Problem find_culprit(std::span<RankEnding const> in_order) {
  CHORUS_ASSERT(std::ranges::any_of(in_order, [](auto const& ending) { return ending.kind != Kind::succeeded; }),
                "blame is for collectives that failed");
  if (auto problem = seen_to_disappear(in_order)) return *problem;
  if (auto problem = own_failure(in_order)) return *problem;
  if (auto problem = named_by_survivors(in_order)) return *problem;
  if (auto problem = out_of_time(in_order)) return *problem;
  return gave_up(in_order);
}

}  // namespace chorus::coordinator
