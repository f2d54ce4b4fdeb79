#include "server/coordinator/collectives/reconciliation.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/wire/errc.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr auto pause_before_asking_again = std::chrono::milliseconds(100);
constexpr auto patience_with_one_answer = std::chrono::milliseconds(1000);

}  // namespace

Reconciliation::Reconciliation(ExecutionTools const& tools, std::chrono::milliseconds patience,
                               std::shared_ptr<Record> record, api::Group group, bool decided)
    : tools_(tools),
      patience_(patience),
      record_(std::move(record)),
      group_(std::move(group)),
      decided_(decided),
      ticket_(tools.locks.enter(lock_keys(group_, record_->view().request))),
      ranks_(group_.members.size()),
      changed_(tools.executor),
      calls_(tools.executor) {}

asio::awaitable<void> Reconciliation::run() {
  deadline_ = Clock::now() + patience_;
  while (!tools_.locks.holds(ticket_)) co_await tools_.locks_changed.wait_until(TimePoint::max());
  co_await all(&Reconciliation::ask);
  if (!given_up_ && is_to_be_committed()) {
    co_await all(&Reconciliation::commit);
    if (!given_up_) succeed_or_fail();
  } else if (!given_up_) {
    co_await all(&Reconciliation::abort);
    if (!given_up_) fail_aborted();
  }
  tools_.locks.leave(ticket_);
  done_ = true;
  changed_.notify_all();
  tools_.locks_changed.notify_all();
}

void Reconciliation::give_up() {
  given_up_ = true;
  calls_.cancel();
}

asio::awaitable<void> Reconciliation::all(asio::awaitable<void> (Reconciliation::*step)(std::uint32_t)) {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) calls_.spawn("reconcile rank", (this->*step)(rank));
  co_await calls_.join();
}

// Asks until the worker answers. A port that refuses connections has no process any more; a silent port may belong to a
// suspended worker.
asio::awaitable<void> Reconciliation::ask(std::uint32_t rank) {
  auto const& url = group_.members[rank].url;
  for (;;) {
    auto const until = std::min(deadline_, Clock::now() + patience_with_one_answer);
    auto const said = co_await tools_.workers.look_at_run(url, record_->view().run, until);
    bool const is_put_off =
        said.has_value() && said.value().has_error() && http::kind(said.value().error().code).retryable;
    if (said.has_value() && !is_put_off) {
      auto& status = ranks_[rank].status.emplace();
      status.state = "unknown";
      if (said.value().has_value()) status = said.value().value();
      co_return;
    }
    bool const is_dead = said.has_error() && said.error().code == http::HttpErrc::connect_failed;
    ranks_[rank].unheard = is_put_off ? said.value().error().detail : said.error().detail;
    if (is_dead) broken_.push_back(rank);
    if (is_dead || Clock::now() + pause_before_asking_again >= deadline_) co_return;
    asio::steady_timer pause(tools_.executor, pause_before_asking_again);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

bool Reconciliation::is_to_be_committed() const {
  auto const anybody = [this](auto const&... states) {
    return std::ranges::any_of(
        ranks_, [&](Rank const& rank) { return rank.status && ((rank.status->state == states) || ...); });
  };
  if (anybody("committed", "committing")) return true;
  return decided_ && !anybody("dropped", "failed");
}

asio::awaitable<void> Reconciliation::commit(std::uint32_t rank) {
  auto& place = ranks_[rank];
  if (!place.status) {
    place.refusal = refused(rank, ProblemCode::peer_lost, "the result was being committed: " + place.unheard);
    co_return;
  }
  auto const deadline = Clock::now() + patience_;
  auto const said = co_await tools_.workers.commit(group_.members[rank].url, record_->view().run, deadline);
  if (said.has_error())
    place.refusal = refused(rank, ProblemCode::peer_lost, "the result was being committed: " + said.error().detail);
  else if (said.value().has_error())
    place.refusal =
        refused(rank, said.value().error().code, "it did not commit the result: " + said.value().error().detail);
  else
    place.version = said.value().value();
}

asio::awaitable<void> Reconciliation::abort(std::uint32_t rank) {
  if (ranks_[rank].status)
    co_await tools_.workers.abort(group_.members[rank].url, record_->view().run, Clock::now() + patience_);
}

void Reconciliation::succeed_or_fail() {
  std::vector<std::uint64_t> versions;
  std::vector<Problem> refusals;
  for (auto const& rank : ranks_) {
    if (rank.refusal) refusals.push_back(*rank.refusal);
    if (rank.version) versions.push_back(*rank.version);
  }
  auto const now = Clock::now();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    auto const& [status, unheard, version, refusal] = ranks_[rank];
    if (record_->view().ranks.at(rank).state != "running") continue;
    if (status && status->report)
      record_->rank_succeeded(rank, *status->report, now);
    else if (version)  // it has refused the question, and then committed
      record_->rank_succeeded(rank, {.run = record_->view().run, .rank = rank, .state = "succeeded"}, now);
  }
  if (refusals.empty()) return record_->succeed(versions, now);
  auto problem = join_refusals(refusals);
  problem.detail += versions.empty() ? "; no rank has confirmed its commit"
                                     : "; the other ranks have the result as their next version";
  record_->fail(std::move(problem), now);
}

void Reconciliation::fail_aborted() {
  Problem problem(ProblemCode::interrupted,
                  "the coordinator was started again before it was decided to commit; it is aborted on every rank");
  if (record_->view().request.in_place) problem.detail += ", and ran in place: ranks that had ended have their result";
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].status) {
      problem.ranks.push_back(rank);
      problem.detail += "; rank " + std::to_string(rank) + " ('" + group_.members[rank].worker +
                        "') did not answer: " + ranks_[rank].unheard;
    }
  record_->fail(std::move(problem), Clock::now());
}

Problem Reconciliation::refused(std::uint32_t rank, ProblemCode code, std::string const& why) const {
  Problem problem(code, "rank " + std::to_string(rank) + " ('" + group_.members[rank].worker + "'): " + why);
  problem.ranks = {rank};
  return problem;
}

}  // namespace chorus::coordinator
