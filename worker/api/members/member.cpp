#include "worker/api/members/member.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/core/error_feedback.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "worker/api/errc.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::embedded {
namespace {

// The calls of the group's REST interface have run numbers of their own: no group's name has a slash.
GroupMembership membership_of(service::Assignment const& assignment) {
  GroupMembership membership;
  membership.name = assignment.group.name + "/embedded";
  membership.epoch = assignment.group.epoch;
  membership.rank = assignment.rank;
  membership.members = assignment.members;
  membership.token = assignment.token;
  return membership;
}

GroupMemory memory_of(Machinery const& machinery) { return {&algorithms::direct, machinery.arena, machinery.regions}; }

std::string lost_of(::chorus::api::Group const& group) {
  std::string text;
  for (auto const& worker : group.lost) text += (text.empty() ? "" : ", ") + worker;
  return text;
}

std::vector<std::uint32_t> lost_ranks(service::Assignment const& assignment, ::chorus::api::Group const& group) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < assignment.members.size(); ++rank)
    if (std::find(group.lost.begin(), group.lost.end(), assignment.members[rank].worker) != group.lost.end())
      ranks.push_back(rank);
  return ranks;
}

}  // namespace

Status Member::check_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) return ok();
  return Error(WorkerErrc::bad_argument, "a timeout of " + std::to_string(timeout.count()) + " ms");
}

Status Member::check_feedback(Options const& options, bool is_list) {
  if (options.error_feedback.empty()) return ok();
  if (auto const able = check_error_feedback(options.compression, is_list); !able)
    return Error(WorkerErrc::bad_argument, "error_feedback '" + options.error_feedback + "' " + able.error().detail);
  return ok();
}

Member::Member(Machinery machinery, service::Assignment const& assignment)
    : name_(assignment.group.name),
      epoch_(assignment.group.epoch),
      place_{assignment.rank, static_cast<std::uint32_t>(assignment.members.size())},
      assignment_(assignment),
      machinery_(std::move(machinery)),
      group_(membership_of(assignment), *machinery_.plane, *machinery_.plans, memory_of(machinery_)),
      fused_(group_, place_.rank, machinery_.arena),
      fused_blocks_(group_, place_.rank, place_.size, machinery_.arena),
      chooser_(assignment.group),
      checked_(place_) {}

Member::~Member() {
  interrupt(engine::EngineErrc::aborted, "the group was left");
  {
    std::lock_guard const lock(queueing_);
    ends_ = true;
    queued_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(messaging_);
  message_ended_.wait(lock, [this] { return messages_begun_ == 0; });
}

std::string Member::path() {
  Turn const turn(turns_);
  return std::string(group_.path());
}

std::string Member::why_not_shared() {
  Turn const turn(turns_);
  // Members that have not met yet may have begun to find reasons.
  return group_.path() == "links" ? group_.why_not_shared() : "";
}

std::string Member::why_over() const {
  std::lock_guard const lock(ending_);
  return over_ ? over_->detail : "";
}

std::vector<std::uint32_t> Member::culprits() const {
  std::lock_guard const lock(ending_);
  return culprits_;
}

void Member::end_with(Error why, std::vector<std::uint32_t> culprits) {
  std::lock_guard const lock(ending_);
  if (!over_) {
    over_ = std::move(why);
    std::sort(culprits.begin(), culprits.end());
    culprits_ = std::move(culprits);
  }
  is_over_.store(true, std::memory_order_release);
}

void Member::interrupt(engine::EngineErrc code, std::string const& why, std::vector<std::uint32_t> culprits) {
  end_with(Error(code, why), std::move(culprits));
  group_.interrupt(code, why);
}

void Member::follow(service::Assignment const* assignment) {
  if (assignment != nullptr && assignment->group.epoch != epoch_) {
    auto const failure = service::superseded_by(assignment_, assignment->group);
    return interrupt(failure.code, failure.text, failure.culprits);
  }
  auto const here = "epoch " + std::to_string(epoch_) + " of group " + name_;
  if (assignment == nullptr)
    return interrupt(engine::EngineErrc::epoch_fenced, here + " is over: this worker is no member any more");
  auto const& group = assignment->group;
  if (!group.lost.empty())
    interrupt(engine::EngineErrc::peer_lost, here + " has lost " + lost_of(group), lost_ranks(assignment_, group));
}

Status Member::finish(engine::RunResult result) {
  if (result.status.has_value()) return ok();
  auto const& why = result.status.error();
  // Refused before anything was sent: the others wait for a corrected call.
  if (why.code.category() == plan_category()) return why;
  end_by(why, result.culprits);
  return why;
}

void Member::end_by(Error const& why, std::vector<std::uint32_t> const& culprits) {
  end_with(why, culprits);
  if (why.code != engine::EngineErrc::epoch_fenced && why.code != engine::EngineErrc::aborted)
    machinery_.report(service::trouble_of(assignment_, culprits));
}

Status Member::standing() const {
  if (!is_over()) return ok();
  std::lock_guard const lock(ending_);
  return *over_;
}

Result<std::chrono::milliseconds> Member::meet(Options const& options) {
  if (auto status = standing(); status.has_error()) return status.error();
  auto const timeout = limited(options.timeout);
  if (has_met_) return timeout;  // a look at the clock would cost as much as a tenth of a small call
  auto const deadline = std::chrono::steady_clock::now() + timeout;
  auto met = group_.meet(timeout);
  has_met_ = met.status.has_value();
  if (auto status = finish(std::move(met)); status.has_error()) return status.error();
  return time_left(deadline);
}

Status Member::run(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options) {
  if (auto status = check_timeout(options.timeout); status.has_error()) return status;
  if (auto status = check_feedback(options, false); status.has_error()) return status;
  auto const buffers = checked_.of(op, input, output, in_place, options);
  if (buffers.has_error()) return buffers.error();
  if (options.algorithm != "auto")
    if (auto const known = algorithms::find(options.algorithm); known.has_error()) return known.error();
  auto const timeout = meet(options);
  if (timeout.has_error()) return timeout.error();
  auto const chosen =
      chooser_.choose(op, buffers->chosen_by_bytes, buffers->dtype, group_.path(), buffers->in_place, options);
  if (chosen.has_error()) return chosen.error();
  auto& call = **chosen;
  call.in_place = buffers->in_place;
  call.timeout = *timeout;
  machinery_.ledger->begun(op);
  auto result = op == Op::barrier ? group_.barrier(call)
                                  : group_.run(op, buffers->input, buffers->output, buffers->dtype, options.reduce,
                                               buffers->elements, call);
  finished_.op = op;
  finished_.algorithm = call.algorithm->name;
  finished_.bytes = op == Op::barrier ? 0 : buffers->elements * element_bytes(buffers->dtype);
  finished_.dtype = buffers->dtype;
  finished_.compression = plan::format_sent(call.compression, *call.algorithm);
  if (finished_.compression && result.status.has_value())
    finished_.wire_bytes =
        plan::wire_bytes_of(*finished_.compression, op, place_.size,
                            {call.counts.empty() ? buffers->elements : 0, call.counts, call.receive_counts});
  count(finished_, result);
  return finish(std::move(result));
}

::chorus::api::GroupCalls Member::calls() const {
  auto const calls = calls_.load(std::memory_order_acquire);
  return {name_, epoch_, calls, static_cast<double>(calls_ns_.load(std::memory_order_relaxed)) * 1e-9};
}

void Member::count(metrics::FinishedRun& run, engine::RunResult const& result) {
  if (result.status.has_value() && !is_rooted(run.op)) {
    calls_ns_.fetch_add(static_cast<std::uint64_t>(result.duration / std::chrono::nanoseconds(1)),
                        std::memory_order_relaxed);
    calls_.fetch_add(1, std::memory_order_release);
  }
  auto const code = result.status.has_value() ? http::ProblemCode::internal
                                              : service::to_problem(result.status.error(), result.culprits).code;
  run.result = result.status.has_value() ? "succeeded" : code == http::ProblemCode::cancelled ? "cancelled" : "failed";
  run.kind = http::kind(code).name;
  run.ranks = place_.size;
  run.seconds = result.seconds();
  run.steps = result.steps;
  run.wait_seconds = result.wait_seconds;
  run.reduced_bytes = result.reduced.bytes;
  run.reduce_seconds = result.reduced.seconds;
  machinery_.ledger->ended(run);
}

Status Member::call(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options) {
  Turn const turn(turns_);
  return run(op, input, output, in_place, options);
}

std::shared_ptr<PendingCall> Member::begin(Op op, ConstTensorView input, TensorView output, bool in_place,
                                           Options options) {
  return submit([this, op, input, output, in_place, options = std::move(options)] {
    return run(op, input, output, in_place, options);
  });
}

// Numbers are drawn here, in the order of the calls; whoever calls without waiting is behind.
std::shared_ptr<PendingCall> Member::submit(std::function<Status()> run) {
  auto pending = std::make_shared<PendingCall>();
  std::lock_guard const lock(queueing_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  jobs_.push_back({0, std::move(run), pending});
  jobs_.back().ticket = turns_.draw();  // once nothing can fail any more: a number that nobody serves stops all others
  queued_.notify_one();
  return pending;
}

void Member::work() {
  for (;;) {
    std::unique_lock lock(queueing_);
    queued_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Turn const turn(turns_, job.ticket);  // whoever has the next one finds this call done
    job.pending->end(job.run());
  }
}

}  // namespace chorus::embedded
