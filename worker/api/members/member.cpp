#include "worker/api/members/member.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "worker/api/members/call_options.hpp"

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

Member::Member(Machinery machinery, service::Assignment const& assignment)
    : name_(assignment.group.name),
      epoch_(assignment.group.epoch),
      place_{assignment.rank, static_cast<std::uint32_t>(assignment.members.size())},
      assignment_(assignment),
      machinery_(std::move(machinery)),
      group_(membership_of(assignment), *machinery_.plane, *machinery_.plans, memory_of(machinery_)),
      end_({[this](auto const& culprits) { machinery_.report(service::trouble_of(assignment_, culprits)); },
            [this](Error const& why, auto const& culprits) {
              engine::Failure failure{engine::code_of(why), why.detail, culprits, {}};
              machinery_.plane->retire({assignment_.token, epoch_, std::move(failure), {}});
            }}),
      frame_(group_, place_, end_, *machinery_.ledger),
      chooser_(assignment.group),
      lists_(group_, place_, chooser_, frame_, machinery_.arena),
      checked_(place_),
      subgroups_(assignment_),
      messages_(group_, place_, end_),
      queue_(turns_) {}

Member::~Member() {
  interrupt(engine::EngineErrc::aborted, "the group was left");
  messages_.wait();
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

std::vector<std::string> Member::ids() const {
  std::vector<std::string> ids;
  for (auto const& peer : assignment_.members) ids.push_back(peer.worker);
  return ids;
}

Result<std::shared_ptr<Member>> Member::subgroup(std::vector<std::uint32_t> const& ranks,
                                                 Machinery::TimePoint deadline) {
  auto named = subgroups_.name(ranks);
  if (named.has_error()) return named.error();
  if (auto const status = end_.standing(); status.has_error()) return status.error();
  return machinery_.create(named->name, std::move(named->ids), deadline);
}

void Member::interrupt(engine::EngineErrc code, std::string const& why, std::vector<std::uint32_t> culprits) {
  end_.end(Error(code, why), std::move(culprits));
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

Status Member::run(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options) {
  if (auto status = check_timeout(options.timeout); status.has_error()) return status;
  if (auto status = check_feedback(options, false); status.has_error()) return status;
  auto const buffers = checked_.of(op, input, output, in_place, options);
  if (buffers.has_error()) return buffers.error();
  if (options.algorithm != "auto")
    if (auto const known = algorithms::find(options.algorithm); known.has_error()) return known.error();
  auto const timeout = frame_.meet(options.timeout);
  if (timeout.has_error()) return timeout.error();
  auto const chosen =
      chooser_.choose(op, buffers->chosen_by_bytes, buffers->dtype, group_.path(), buffers->in_place, options);
  if (chosen.has_error()) return chosen.error();
  auto& call = **chosen;
  call.in_place = buffers->in_place;
  call.timeout = *timeout;
  frame_.begun(op);
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
  frame_.count(finished_, result);
  return frame_.finish(std::move(result));
}

::chorus::api::GroupCalls Member::calls() const {
  auto const calls = frame_.calls();
  return {name_, epoch_, calls, std::chrono::duration<double>(frame_.time()).count()};
}

Status Member::call(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options) {
  Turn const turn(turns_);
  return frame_.attempt([&] { return run(op, input, output, in_place, options); });
}

Status Member::call(Op op, std::span<TensorView const> tensors, Options const& options) {
  Turn const turn(turns_);
  return frame_.attempt([&] { return lists_.run(op, tensors, options); });
}

Status Member::call(Op op, BlockLists const& lists, Options const& options) {
  Turn const turn(turns_);
  return frame_.attempt([&] { return lists_.run(op, lists, options); });
}

std::shared_ptr<PendingCall> Member::begin(Op op, ConstTensorView input, TensorView output, bool in_place,
                                           Options options) {
  return queue_.submit([this, op, input, output, in_place, options = std::move(options)] {
    return frame_.attempt([&] { return run(op, input, output, in_place, options); });
  });
}

std::shared_ptr<PendingCall> Member::begin(Op op, std::span<TensorView const> tensors, Options options) {
  return queue_.submit(
      [this, op, list = std::vector<TensorView>(tensors.begin(), tensors.end()), options = std::move(options)] {
        return frame_.attempt([&] { return lists_.run(op, list, options); });
      });
}

std::shared_ptr<PendingCall> Member::begin(Op op, BlockLists lists, Options options) {
  return queue_.submit([this, op, lists = std::move(lists), options = std::move(options)] {
    return frame_.attempt([&] { return lists_.run(op, lists, options); });
  });
}

}  // namespace chorus::embedded
