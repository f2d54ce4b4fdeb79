#include <doctest/doctest.h>

#include "server/coordinator/diagnosis/blame.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using http::ProblemCode;
using Kind = RankEnding::Kind;
using Ranks = std::vector<std::uint32_t>;

namespace {

RankEnding ending(Kind kind, std::uint32_t rank, ProblemCode code = ProblemCode::internal, Ranks named = {},
                  std::string detail = "why") {
  http::Problem problem(code, std::move(detail));
  problem.ranks = std::move(named);
  return {kind, rank, "w" + std::to_string(rank), std::move(problem)};
}
RankEnding succeeded(std::uint32_t rank) { return ending(Kind::succeeded, rank); }
RankEnding lost(std::uint32_t rank, std::string detail = "its lease has passed") {
  return ending(Kind::lost, rank, ProblemCode::peer_lost, {}, std::move(detail));
}
RankEnding silent(std::uint32_t rank) { return ending(Kind::silent, rank); }
RankEnding says_lost(std::uint32_t rank, Ranks named) {
  return ending(Kind::failed, rank, ProblemCode::peer_lost, std::move(named));
}
RankEnding waited(std::uint32_t rank, Ranks named) {
  return ending(Kind::failed, rank, ProblemCode::deadline_exceeded, std::move(named));
}
RankEnding aborted(std::uint32_t rank) { return ending(Kind::failed, rank, ProblemCode::cancelled); }

http::Problem culprit(std::vector<RankEnding> const& endings) { return find_culprit(endings); }

}  // namespace

TEST_CASE("a worker whose connection broke is the culprit, whatever the survivors report of each other") {
  auto const problem = culprit({says_lost(0, {3}), lost(2, "connection reset"), says_lost(3, {0}), aborted(1)});
  CHECK(problem.code == ProblemCode::peer_lost);
  CHECK(problem.ranks == Ranks{2});
  CHECK(problem.detail == "rank 2 ('w2') was lost during the collective: connection reset");
}

TEST_CASE("several ranks that disappeared are all named") {
  auto const problem = culprit({lost(3), succeeded(0), lost(1)});
  CHECK(problem.ranks == Ranks{1, 3});
  CHECK(problem.detail.starts_with("rank 1 ('w1'), rank 3 ('w3') were lost"));
}

TEST_CASE("a rank with a failure of its own is the culprit, though its peers saw it leave first") {
  auto const problem =
      culprit({says_lost(0, {1}), ending(Kind::failed, 1, ProblemCode::internal, {}, "no memory"), says_lost(2, {1})});
  CHECK(problem.code == ProblemCode::internal);
  CHECK(problem.ranks == Ranks{1});
  CHECK(problem.detail == "rank 1 ('w1') failed: no memory");
}

TEST_CASE("if the accused rank lives, the network between it and its accusers is the culprit") {
  auto const one_way =
      culprit({ending(Kind::failed, 2, ProblemCode::peer_lost, {1}, "lost rank 1 (w1) while sending"),
               ending(Kind::failed, 0, ProblemCode::peer_lost, {1}, "rank 2 (w2) reports: lost rank 1"), aborted(1)});
  CHECK(one_way.code == ProblemCode::peer_lost);
  CHECK(one_way.ranks == Ranks{1, 2});
  CHECK(one_way.detail ==
        "the network between rank 1 ('w1'), rank 2 ('w2') failed, and the coordinator has their answers; rank 2 ('w2') "
        "reported: lost rank 1 (w1) while sending");
  CHECK(culprit({says_lost(0, {1}), says_lost(1, {0})}).ranks == Ranks{0, 1});
  auto const cut_off = culprit({says_lost(0, {1}), says_lost(2, {1}), aborted(1)});
  CHECK(cut_off.ranks == Ranks{1});
  CHECK(cut_off.detail.starts_with("the network of rank 1 ('w1') failed"));
}

TEST_CASE("an accused rank that does not answer the coordinator is the culprit") {
  CHECK(culprit({says_lost(0, {1}), silent(1), says_lost(2, {1})}).ranks == Ranks{1});
}

TEST_CASE("ranks that a failure itself names are kept") {
  CHECK(culprit({ending(Kind::failed, 0, ProblemCode::plan_mismatch, {0, 2})}).ranks == Ranks{0, 2});
}

TEST_CASE("the majority of the survivors' reports counts, and no rank votes for itself") {
  CHECK(culprit({says_lost(0, {2}), says_lost(1, {2}), says_lost(2, {2, 0}), says_lost(3, {0})}).ranks == Ranks{0, 2});
  CHECK(culprit({says_lost(0, {2}), says_lost(1, {2}), says_lost(2, {1}), aborted(3)}).ranks == Ranks{2});
}

TEST_CASE("two ranks that accuse each other are both named: the link is the culprit") {
  CHECK(culprit({says_lost(1, {2}), says_lost(2, {1}), aborted(0)}).ranks == Ranks{1, 2});
}

TEST_CASE("a timeout names the rank that most waited for, or else the silent ranks") {
  auto const waiting = culprit({waited(0, {2}), waited(1, {2}), silent(2), waited(3, {0})});
  CHECK(waiting.code == ProblemCode::deadline_exceeded);
  CHECK(waiting.ranks == Ranks{2});
  CHECK(waiting.detail.find("waited for rank 2 ('w2')") != std::string::npos);
  CHECK(culprit({succeeded(0), silent(1), silent(2)}).ranks == Ranks{1, 2});
  auto const nobody = culprit({waited(0, {}), waited(1, {})});
  CHECK(nobody.code == ProblemCode::deadline_exceeded);
  CHECK(nobody.ranks.empty());
}

TEST_CASE("the first rank that gave up without being asked is the culprit") {
  auto const problem = culprit({succeeded(0), aborted(2), aborted(1)});
  CHECK(problem.code == ProblemCode::peer_lost);
  CHECK(problem.ranks == Ranks{2});
}
