#include "worker/service/collectives/runs/run_registry.hpp"

#include <array>

#include "collectives/core/assert.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/service/collectives/runs/statistics_message.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

std::string of_run(std::uint64_t run) { return "run " + std::to_string(run); }

Problem unknown_run(std::uint64_t run) { return {ProblemCode::unknown_run, of_run(run) + " is not known here"}; }

Problem was_aborted(std::uint64_t run) { return {ProblemCode::cancelled, of_run(run) + " was aborted"}; }

std::uint64_t microseconds_of(steady_clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

api::RunReport to_report(std::uint64_t run, plan::Rank rank, std::string worker, RunEnd const& end) {
  api::RunReport report;
  report.run = run;
  report.rank = rank;
  report.worker = std::move(worker);
  report.state = end.problem ? "failed" : "succeeded";
  report.started_us = microseconds_of(end.started);
  put_statistics(report, end.statistics);
  if (!end.input_digest.empty()) report.input_digest = end.input_digest;
  if (!end.output_digest.empty()) report.output_digest = end.output_digest;
  report.error = end.problem;
  return report;
}

}  // namespace

RunRegistry::RunRegistry(boost::asio::any_io_executor executor, Runner& runner, Limits limits)
    : executor_(executor), runner_(runner), limits_(limits), closed_one_(executor), tasks_(std::move(executor)) {}

RunRegistry::RecordPtr RunRegistry::find(std::uint64_t run) const {
  auto const found = records_.find(run);
  return found == records_.end() ? nullptr : found->second;
}

awaitable<Checked<api::RunReport>> RunRegistry::put(RunOrder order, std::string worker, std::string request) {
  auto const run = order.run;
  auto record = find(run);
  if (record == nullptr) {
    if (draining_) co_return Problem(ProblemCode::unavailable, "the worker is shutting down");
    record = std::make_shared<Record>(executor_);
    record->request = std::move(request);
    records_.emplace(run, record);
    ++open_;
    tasks_.spawn(of_run(run), live(run, record, std::move(order), std::move(worker)));
  } else if (record->state == State::dropped && record->request.empty()) {
    co_return was_aborted(run);
  } else if (record->request != request) {
    co_return Problem(ProblemCode::idempotency_reused, of_run(run) + " was asked for with another body");
  }
  while (!record->outcome) co_await record->changed.wait_until(http::Condition::TimePoint::max());
  co_return *record->outcome;
}

awaitable<void> RunRegistry::live(std::uint64_t run, RecordPtr record, RunOrder order, std::string worker) {
  auto const rank = order.rank;
  auto const forget = order.deadline + limits_.hold;
  auto ended = co_await runner_.run(std::move(order));
  if (!ended) {
    // Refused before the start: the run may be asked for again once the reason is gone.
    record->outcome = ended.error();
    if (!record->drop_asked) records_.erase(run);
    end(run, *record, State::dropped);
    // Peers may have sent data that no run here will take.
    if (record->drop_asked) abort(run);
    co_return;
  }
  record->outcome = to_report(run, rank, std::move(worker), *ended);
  if (ended->problem || record->drop_asked) {
    ended->result.drop();
    end(run, *record, ended->problem ? State::failed : State::dropped);
    co_return;
  }
  record->result = std::move(ended->result);
  record->state = State::held;
  record->changed.notify_all();
  while (record->state == State::held && steady_clock::now() < forget) co_await record->changed.wait_until(forget);
  if (record->state != State::held) co_return;
  record->result.drop();
  end(run, *record, State::dropped);
}

void RunRegistry::end(std::uint64_t run, Record& record, State state) {
  record.state = state;
  record.changed.notify_all();
  --open_;
  closed_one_.notify_all();
  if (!records_.contains(run)) return;
  ended_.push_back(run);
  if (ended_.size() <= limits_.remembered) return;
  records_.erase(ended_.front());
  ended_.pop_front();
}

awaitable<Checked<std::uint64_t>> RunRegistry::commit(std::uint64_t run) {
  auto const record = find(run);
  if (record == nullptr) co_return unknown_run(run);
  while (record->state == State::committing) co_await record->changed.wait_until(http::Condition::TimePoint::max());
  switch (record->state) {
    case State::running:
    case State::committing:
      co_return Problem(ProblemCode::busy, of_run(run) + " has not ended yet");
    case State::committed:
      co_return record->version;
    case State::dropped:
      co_return record->refusal.value_or(was_aborted(run));
    case State::failed:
      co_return *record->outcome->value().error;
    case State::held:
      break;
  }
  record->state = State::committing;
  record->changed.notify_all();
  // A task of the registry, so that it completes even if the requesting client disconnects.
  tasks_.spawn(of_run(run), finish(run, record));
  while (record->state == State::committing) co_await record->changed.wait_until(http::Condition::TimePoint::max());
  if (record->state == State::committed) co_return record->version;
  co_return *record->refusal;
}

awaitable<void> RunRegistry::finish(std::uint64_t run, RecordPtr record) {
  auto const version = co_await runner_.commit(std::move(record->result));
  if (!version) {
    record->refusal = to_problem(version.error());
    end(run, *record, State::dropped);
    co_return;
  }
  record->version = *version;
  record->outcome->value().version = *version;
  end(run, *record, State::committed);
}

// Tells peers that have sent data, whether the run was begun here or not. Members' calls are not the coordinator's to
// abort.
void RunRegistry::abort(std::uint64_t run) {
  if (engine::is_members_call(run)) return;
  runner_.abort(run, Error(engine::EngineErrc::aborted, of_run(run) + " was aborted"));
}

std::optional<Problem> RunRegistry::drop(std::uint64_t run) {
  auto record = find(run);
  if (record == nullptr) {
    // The abort has overtaken the request: remember it, so that the run will not start.
    record = std::make_shared<Record>(executor_);
    records_.emplace(run, record);
    ++open_;
    end(run, *record, State::dropped);
    abort(run);
    return std::nullopt;
  }
  switch (record->state) {
    case State::committing:
      return Problem(ProblemCode::mismatch, of_run(run) + " is being committed");
    case State::committed:
      return Problem(ProblemCode::mismatch,
                     of_run(run) + " is committed as version " + std::to_string(record->version));
    case State::running:
      record->drop_asked = true;
      abort(run);
      break;
    case State::held:
      record->result.drop();
      end(run, *record, State::dropped);
      break;
    case State::failed:
    case State::dropped:
      break;
  }
  return std::nullopt;
}

std::optional<api::RunStatus> RunRegistry::status(std::uint64_t run) const {
  constexpr std::array names{"running", "held", "committing", "committed", "failed", "dropped"};
  static_assert(names.size() == static_cast<std::size_t>(State::dropped) + 1);
  auto const record = find(run);
  if (record == nullptr) return std::nullopt;
  api::RunStatus status{run, names.at(static_cast<std::size_t>(record->state)), std::nullopt};
  if (record->outcome && record->outcome->has_value()) status.report = record->outcome->value();
  return status;
}

awaitable<void> RunRegistry::drained(steady_clock::time_point deadline) {
  while (open_ > 0 && steady_clock::now() < deadline) co_await closed_one_.wait_until(deadline);
}

awaitable<void> RunRegistry::stop() {
  draining_ = true;
  std::vector<std::uint64_t> open;
  for (auto const& [run, record] : records_)
    if (record->state == State::running || record->state == State::held) open.push_back(run);
  for (auto const run : open) static_cast<void>(drop(run));
  co_await tasks_.join();
}

}  // namespace chorus::service
