// ShardHost's part for ownership: role, lease, lost devices, and the status that reports them.
#include <algorithm>

#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {

using http::Problem;
using http::ProblemCode;

// An order that was delayed for longer than the lease has an earlier term.
void ShardHost::heed_term(api::ShardAssignment const& assignment) {
  if (tools_.lease != nullptr) term_ = std::max(term_, assignment.term.value_or(tools_.lease->term()));
}

bool ShardHost::is_unconfirmed() const {
  return role_ == Role::owner && (is_fenced_ || (tools_.lease != nullptr && term_ != tools_.lease->term()));
}

bool ShardHost::is_suspended() const {
  return is_unconfirmed() || (role_ == Role::owner && tools_.lease != nullptr && !tools_.lease->lives());
}

Problem ShardHost::suspended() const {
  Problem problem(ProblemCode::unavailable,
                  title() +
                      " takes no pushes: its owner's lease at the coordinator is over, and somebody else may own "
                      "it; repeat the push with the same sequence");
  problem.retry_after_s = 1;
  return problem;
}

// The shard's state is unknown now. An owner becomes a backup that waits for an image. The loss is reported, and the
// coordinator finds another owner.
Problem ShardHost::break_down(Error const& why) {
  broken_ = Problem(ProblemCode::unavailable, title() + " has been lost with its device: " + why.detail);
  broken_->retry_after_s = 1;
  if (role_ == Role::owner) step_down();
  is_complete_ = false;
  has_image_ = false;
  is_unused_ = false;
  changed_.notify_all();
  if (tools_.events.lost) tools_.events.lost(spec_.parameter, spec_.index, why.detail);
  return *broken_;
}

// Handles an error of a call that only reads the device: the shard is lost only if the device is.
Problem ShardHost::heed(Error const& error) {
  auto const* const unit = shard_->gpu();
  if (unit != nullptr && unit->lost() && !broken_) return break_down(error);
  Problem problem(ProblemCode::unavailable, error.detail);
  problem.retry_after_s = 1;
  return problem;
}

api::ShardStatus ShardHost::status() const {
  api::ShardStatus status;
  status.parameter = spec_.parameter;
  status.shard = spec_.index;
  status.begin = spec_.begin;
  status.end = spec_.end;
  status.epoch = epoch_;
  status.role = role_ == Role::owner ? "owner" : "backup";
  status.complete = is_complete_;
  status.version = shard_->version();
  status.position = shard_->position();
  status.rows = shard_->rows();
  status.unconfirmed = is_unconfirmed();
  for (auto const& follower : followers_.list())
    if (follower->stage == Follower::Stage::in_step) status.backups_complete.push_back(follower->peer().worker);
  if (shard_->clocks().count())
    for (auto const& client : shard_->clocks().progress()) status.clocks.push_back({client.client, client.done});
  return status;
}

}  // namespace chorus::parameters
