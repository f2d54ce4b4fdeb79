#include "server/coordinator/collectives/execution.hpp"

#include <algorithm>
#include <utility>

#include "http/message/trace_context.hpp"
#include "http/wire/errc.hpp"
#include "server/coordinator/collectives/plan_question.hpp"
#include "server/planning/explain.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

}  // namespace

Execution::Execution(ExecutionTools const& tools, ExecutionPatience patience, std::shared_ptr<Record> record,
                     Order order, GroupSnapshot group, Mode mode, TimePoint deadline)
    : tools_(tools),
      patience_(patience),
      record_(std::move(record)),
      order_(std::move(order)),
      snapshot_(std::move(group)),
      group_(*snapshot_),
      mode_(mode),
      changed_(tools.executor),
      calls_(tools.executor),
      begun_(Clock::now()),
      deadline_(deadline),
      run_ranks_(group_, order_.wish),
      tensors_(group_, admission_question(record_->view().request, order_), tools.group_statistics.tensors,
               tools.workers) {}

asio::awaitable<std::optional<Problem>> Execution::run() {
  if (launches() && !ticket_) ticket_ = tools_.locks.enter(lock_keys(group_, record_->view().request));
  auto problem = co_await stages();
  calls_.cancel();
  co_await calls_.join();
  if (mistaken_ && cancelled_) mistaken_ = false, problem = cancelled_;
  if (mistaken_) co_return problem;
  if (launches()) tools_.locks.leave(*ticket_);
  bool const goes_on = problem && may_go_on(*problem);
  if (!goes_on) end(std::exchange(problem, std::nullopt));
  tools_.locks_changed.notify_all();
  co_return problem;
}

bool Execution::may_go_on(Problem const& problem) const {
  auto const& request = record_->view().request;
  bool const is_loss = problem.code == ProblemCode::peer_lost || problem.code == ProblemCode::corrupt_frame ||
                       problem.code == ProblemCode::worker_unreachable || problem.code == ProblemCode::group_broken ||
                       problem.code == ProblemCode::epoch_fenced;
  bool const shrinks = may_shrink(group_.requested) && request.on_failure.value_or("shrink") == "shrink";
  return launches() && shrinks && is_loss && !request.in_place && !request.epoch && !committing_ && !cancelled_ &&
         Clock::now() < deadline_;
}

void Execution::take_place_of(Execution& mistaken) {
  ticket_ = std::exchange(mistaken.ticket_, std::nullopt);
  begun_ = mistaken.begun_;
}

void Execution::superseded() {
  done_ = true;
  changed_.notify_all();
}

void Execution::end(std::optional<Problem> problem) {
  auto const now = Clock::now();
  if (problem && problem->code == ProblemCode::cancelled && cancelled_)
    record_->cancel(std::move(*problem), now);
  else if (problem)
    record_->fail(std::move(*problem), now);
  done_ = true;
  changed_.notify_all();
}

Execution::Stage Execution::stages() {
  if (launches())
    if (auto problem = co_await wait_in_line()) co_return problem;
  if (auto problem = co_await admit()) co_return problem;
  if (auto problem = co_await plan()) co_return problem;
  if (mode_ == Mode::validate_only) co_return std::nullopt;
  if (auto problem = co_await launch()) {
    if (record_->view().state != "running") co_return problem;  // nothing was launched
    co_await abort_all();
    if (tensors_.went_by_known() && contradicted_) {
      tensors_.forget();
      mistaken_ = Clock::now() < deadline_;
      if (mistaken_) co_return problem;
      co_return Problem(ProblemCode::deadline_exceeded, "the time was over before its workers could be asked");
    }
    // Only now every rank that can report has reported.
    auto why = cancelled_ ? *cancelled_ : failures_ > 0 ? find_culprit(endings_) : *problem;
    if (why.code != ProblemCode::cancelled && !tells_another_tensor(why.code))
      tools_.planner.learn_failure(question_, chosen_);
    co_return why;
  }
  co_return co_await commit();
}

Execution::Stage Execution::wait_in_line() {
  while (!tools_.locks.holds(*ticket_)) {
    if (!in_line_) changed_.notify_all();
    in_line_ = true;
    if (cancelled_) co_return cancelled_;
    if (Clock::now() >= deadline_)
      co_return Problem(ProblemCode::deadline_exceeded, "another collective on tensor '" +
                                                            record_->view().request.tensor +
                                                            "' did not end in time; none of this one was begun");
    co_await tools_.locks_changed.wait_until(deadline_);
  }
  in_line_ = false;
  auto const present = tools_.groups.find(group_.name);
  if (present.has_error()) co_return present.error();
  if (present.value()->epoch != group_.epoch)
    co_return Problem(ProblemCode::epoch_fenced,
                      "group '" + group_.name + "' moved from epoch " + std::to_string(group_.epoch) + " to " +
                          std::to_string(present.value()->epoch) + " while this collective waited");
  co_return tools_.groups.unusable(*present.value());
}

Execution::Stage Execution::admit() {
  if (mode_ == Mode::launch && tensors_.admit_as_known()) co_return std::nullopt;
  auto const deadline = std::min(deadline_, Clock::now() + patience_.admission);
  pending_ = tensors_.must_ask() ? ranks() : 0;
  if (pending_ > 0)
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) calls_.spawn("admit rank", ask_for_tensor(rank, deadline));
  wait_from_now_on(Waits::for_tensors);
  while (pending_ > 0 && !failing()) co_await changed_.wait_until(TimePoint::max());
  wait_from_now_on(Waits::for_nobody);
  if (failing()) co_return cancelled_ ? cancelled_ : lost_;
  co_return tensors_.admit();
}

asio::awaitable<void> Execution::ask_for_tensor(std::uint32_t rank, TimePoint deadline) {
  auto const asked = co_await tensors_.ask(rank, deadline);
  if (asked.has_error()) {
    if (asked.error().code == http::HttpErrc::connect_failed) broken_.push_back(rank);
    auto const late = Clock::now() >= deadline_;
    tensors_.refuse(rank, refused(rank, late ? ProblemCode::deadline_exceeded : ProblemCode::worker_unreachable,
                                  asked.error().detail));
  }
  --pending_;
  changed_.notify_all();
}

Execution::Stage Execution::plan() {
  if (auto problem = check_format(order_.compression, tensors_.admitted().dtype)) co_return problem;
  auto const in_rank_order = tools_.groups.standing(group_);
  auto const& admitted = tensors_.admitted();
  auto const possible = alternatives(order_.compression, admitted, in_rank_order.localities);
  std::vector<model::Sent> considered;
  for (auto const& sent : possible.sent) {
    auto question = question_about(group_, order_, admitted, sent);
    auto const member = planning::refused_member(question.wish);
    auto choice = co_await tools_.planner.select(std::move(question), in_rank_order);
    if (choice.has_error()) {
      Problem problem(ProblemCode::invalid_field, choice.error().detail);
      problem.errors.push_back({member, choice.error().detail});
      co_return problem;
    }
    if (failing()) co_return cancelled_ ? cancelled_ : lost_;
    if (Clock::now() >= deadline_)
      co_return Problem(ProblemCode::deadline_exceeded, "the time was over before the collective was planned");
    considered.push_back({sent, std::move(choice.value())});
  }
  auto decision = planning::decide(order_.compression, possible, std::move(considered),
                                   {admitted.parts.front().sizes, admitted.dtype});
  question_ = question_about(group_, order_, admitted, decision.compression);
  chosen_ = decision.choice.spec;
  run_ranks_ = RunRanks(group_, question_.wish);
  record_->sends(decision.format, decision.wire_bytes, std::move(decision.considered_formats));
  record_->plan(group_, admitted, decision.choice, Clock::now());
  give_time();
  if (launches()) tools_.collective_history.planned(*record_);
  changed_.notify_all();
  co_return std::nullopt;
}

// Sets the timeout: from here on the time depends only on the members.
void Execution::give_time() {
  auto timeout = std::chrono::milliseconds(record_->view().request.timeout_ms.value_or(0));
  if (timeout.count() == 0) {
    auto const patience_s = tools_.group_statistics.paces[group_.name].patience_s(chosen_.op, record_->view().bytes,
                                                                                  record_->view().predicted_seconds);
    timeout = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(patience_s));
    deadline_ = Clock::now() + timeout;
  }
  record_->given_time(timeout);
}

Execution::Stage Execution::launch() {
  if (auto problem = co_await tools_.collective_history.launching(*record_, deadline_)) co_return problem;
  if (failing()) co_return cancelled_ ? cancelled_ : lost_;
  auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  if (left < 1) co_return Problem(ProblemCode::deadline_exceeded, "the time was over before the collective began");
  auto const token = api::to_hex(tools_.random());
  record_->run();
  waited_seconds_ = std::chrono::duration<double>(Clock::now() - begun_).count();
  settled_.assign(ranks(), false);
  pending_ = ranks();
  for (std::uint32_t rank = 0; rank < ranks(); ++rank)
    calls_.spawn("run rank", run_rank(rank,
                                      run_ranks_.request(rank, group_, record_->view(), tensors_.admitted(), token,
                                                         static_cast<std::uint64_t>(left)),
                                      deadline_ + patience_.report));
  wait_from_now_on(Waits::for_runs);
  changed_.notify_all();
  while (pending_ > 0 && !failing()) co_await changed_.wait_until(TimePoint::max());
  wait_from_now_on(Waits::for_nobody);
  if (failing()) co_return Problem(ProblemCode::internal, "the collective failed");
  if (auto problem = record_->check_digests()) co_return problem;
  committing_ = true;  // cancellations and losses are too late from here on
  auto undecided = co_await tools_.collective_history.deciding(*record_, deadline_);
  committing_ = !undecided;
  co_return undecided;
}

asio::awaitable<void> Execution::run_rank(std::uint32_t rank, api::RunRequest request, TimePoint deadline) {
  auto trace = http::parse_traceparent(record_->view().traceparent.value_or(""));
  if (trace) trace = http::child_of(*trace, tools_.random() | 1);
  auto const said =
      co_await tools_.workers.run(group_.members[rank].url, std::move(request), std::move(trace), deadline);
  if (settled_[rank]) co_return;
  if (said.has_error()) {
    auto const silent =
        said.error().code == http::HttpErrc::timed_out || said.error().code == http::HttpErrc::local_limit;
    if (!silent) broken_.push_back(rank);
    contradicted_ |= said.error().code == http::HttpErrc::connect_failed;
    record_->rank_failed(rank, std::nullopt);
    settle(silent ? RankEnding::Kind::silent : RankEnding::Kind::lost, rank,
           Problem(ProblemCode::peer_lost, said.error().detail));
    co_return;
  }
  auto const& answer = said.value();
  if (answer.has_error()) {
    contradicted_ |= tells_another_tensor(answer.error().code);
    record_->rank_failed(rank, std::nullopt);
    settle(RankEnding::Kind::failed, rank, run_ranks_.in_group_ranks(answer.error()));
  } else if (answer.value().state == "succeeded") {
    record_->rank_succeeded(rank, answer.value(), Clock::now());
    settle(RankEnding::Kind::succeeded, rank, {});
  } else {
    record_->rank_failed(rank, answer.value());
    settle(RankEnding::Kind::failed, rank,
           run_ranks_.in_group_ranks(
               answer.value().error.value_or(Problem(ProblemCode::internal, "the worker gave no reason"))));
  }
}

void Execution::settle(RankEnding::Kind kind, std::uint32_t rank, Problem problem) {
  settled_[rank] = true;
  endings_.push_back({kind, rank, group_.members[rank].worker, std::move(problem)});
  if (kind != RankEnding::Kind::succeeded) ++failures_;
  --pending_;
  if (waits_ == Waits::for_runs) wait_from_now_on(Waits::for_runs);
  changed_.notify_all();
}

// Ends running ranks and drops held results, then collects the reports, which say why the ranks ended.
asio::awaitable<void> Execution::abort_all() {
  auto const deadline = Clock::now() + patience_.abort;
  std::vector<bool> is_lost(ranks());
  for (auto const& ending : endings_)
    if (ending.kind == RankEnding::Kind::lost) is_lost[ending.rank] = true;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    if (is_lost[rank]) continue;
    ++pending_;
    calls_.spawn("abort rank", abort_rank(rank, deadline));
  }
  while (pending_ > 0 && Clock::now() < deadline) co_await changed_.wait_until(deadline);
  for (std::uint32_t rank = 0; rank < ranks(); ++rank)
    if (!settled_[rank]) settle(RankEnding::Kind::silent, rank, {});
}

asio::awaitable<void> Execution::abort_rank(std::uint32_t rank, TimePoint deadline) {
  co_await tools_.workers.abort(group_.members[rank].url, record_->view().run, deadline);
  --pending_;
  changed_.notify_all();
}

Execution::Stage Execution::commit() {
  commits_.resize(ranks());
  pending_ = ranks();
  auto const deadline = Clock::now() + patience_.commit;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) calls_.spawn("commit rank", commit_rank(rank, deadline));
  wait_from_now_on(Waits::for_commits);
  while (pending_ > 0) co_await changed_.wait_until(TimePoint::max());
  wait_from_now_on(Waits::for_nobody);
  std::vector<std::uint64_t> versions;
  std::vector<Problem> refusals;
  for (auto const& committed : commits_) {
    if (committed->has_error())
      refusals.push_back(committed->error());
    else
      versions.push_back(committed->value());
  }
  if (refusals.empty()) {
    tensors_.learn(versions);
    record_->succeed(versions, Clock::now());
    learn();
    co_return std::nullopt;
  }
  auto problem = join_refusals(refusals);
  problem.detail += versions.empty() ? "; no rank has confirmed its commit"
                                     : "; the other ranks have the result as their next version";
  co_return problem;
}

void Execution::learn() {
  std::vector<double> durations_s;
  for (auto const& rank : record_->view().ranks) durations_s.push_back(rank.report->seconds);
  auto const slowest_s = *std::ranges::max_element(durations_s);
  tools_.planner.learn(question_, chosen_, slowest_s);
  tools_.group_statistics.paces[group_.name].finished(chosen_.op, record_->view().bytes, slowest_s);
  if (is_rooted(chosen_.op)) return;
  record_->came_late(lateness_s(durations_s));
  tools_.group_statistics.stragglers.finished(group_, durations_s);
}

asio::awaitable<void> Execution::commit_rank(std::uint32_t rank, TimePoint deadline) {
  auto const said = co_await tools_.workers.commit(group_.members[rank].url, record_->view().run, deadline);
  if (said.has_error()) {
    broken_.push_back(rank);
    commits_[rank] = refused(rank, ProblemCode::peer_lost, "the result was being committed: " + said.error().detail);
  } else if (said.value().has_error()) {
    commits_[rank] =
        refused(rank, said.value().error().code, "it did not commit the result: " + said.value().error().detail);
  } else {
    commits_[rank] = said.value();
  }
  --pending_;
  changed_.notify_all();
}

std::optional<Execution::Standing> Execution::standing() const {
  if (waits_ == Waits::for_nobody || done_) return std::nullopt;
  Standing standing{waits_since_, {}, waits_ == Waits::for_runs};
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    bool const is_awaited = waits_ == Waits::for_tensors ? !tensors_.has_answered(rank)
                            : waits_ == Waits::for_runs  ? !settled_[rank]
                                                         : !commits_[rank].has_value();
    if (is_awaited) standing.awaited.push_back(rank);
  }
  return standing;
}

bool Execution::cancel(Problem why) {
  if (committing_ || done_) return false;
  if (!cancelled_) cancelled_ = std::move(why);
  changed_.notify_all();
  tools_.locks_changed.notify_all();
  return true;
}

void Execution::worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why) {
  if (done_ || committing_) return;
  for (auto const& member : group_.members) {
    if (member.worker != worker || member.incarnation != incarnation) continue;
    if (record_->view().state != "running") {
      lost_ = refused(member.rank, ProblemCode::peer_lost, why);
      changed_.notify_all();
    } else if (!settled_[member.rank]) {
      record_->rank_failed(member.rank, std::nullopt);
      settle(RankEnding::Kind::lost, member.rank, Problem(ProblemCode::peer_lost, why));
    }
  }
}

Problem Execution::refused(std::uint32_t rank, ProblemCode code, std::string const& why) const {
  return refusal(rank, code, rank_title(rank, group_.members[rank].worker) + ": " + why);
}

}  // namespace chorus::coordinator
