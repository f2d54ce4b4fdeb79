#include "worker/parameters/serving/copy/tenure.hpp"

#include <algorithm>
#include <utility>

namespace chorus::parameters {

using http::Problem;
using http::ProblemCode;

Tenure::Tenure(std::string title, OwnerLease const* lease, api::ShardAssignment const& assignment)
    : title_(std::move(title)),
      lease_(lease),
      role_(assignment.role == "owner" ? Role::owner : Role::backup),
      epoch_(assignment.epoch),
      is_complete_(assignment.fresh || assignment.recover) {
  confirm(assignment);
}

void Tenure::begin(std::uint32_t epoch) {
  epoch_ = epoch;
  is_fenced_ = false;
}

// An order that was delayed for longer than the lease has an earlier term.
void Tenure::confirm(api::ShardAssignment const& assignment) {
  if (lease_ != nullptr) term_ = std::max(term_, assignment.term.value_or(lease_->term()));
}

bool Tenure::is_unconfirmed() const {
  return is_owner() && (is_fenced_ || (lease_ != nullptr && term_ != lease_->term()));
}

bool Tenure::is_suspended() const { return is_unconfirmed() || (is_owner() && lease_ != nullptr && !lease_->lives()); }

std::optional<Problem> Tenure::why_not_serving() const {
  if (!closed_ && serves()) return std::nullopt;
  return closed_or_misdirected();
}

std::optional<Problem> Tenure::why_not_following(std::uint32_t epoch) const {
  if (closed_) return *closed_;
  if (epoch == epoch_ && !is_owner()) return std::nullopt;
  if (epoch > epoch_)
    return Problem(ProblemCode::unavailable,
                   title_ + " has not been placed here in epoch " + std::to_string(epoch) + " yet");
  return Problem(ProblemCode::epoch_fenced, "epoch " + std::to_string(epoch) + " of " + title_ +
                                                " is over: " + std::to_string(epoch_) + " has begun");
}

std::optional<Problem> Tenure::why_outdated(std::uint32_t epoch) const {
  if (epoch >= epoch_) return std::nullopt;
  Problem problem(ProblemCode::epoch_fenced, "epoch " + std::to_string(epoch) + " of " + title_ +
                                                 " is over: the highest seen is " + std::to_string(epoch_));
  problem.errors.push_back({"/epoch", std::to_string(epoch_)});
  return problem;
}

Problem Tenure::misdirected() const {
  if (is_fenced_)
    return {ProblemCode::misdirected,
            "this worker has not heard yet who owns " + title_ + " since epoch " + std::to_string(epoch_)};
  return {ProblemCode::misdirected, "this worker is " + std::string(is_complete_ ? "a" : "to become a") +
                                        " backup of " + title_ + " in epoch " + std::to_string(epoch_)};
}

Problem Tenure::suspended() const {
  Problem problem(ProblemCode::unavailable,
                  title_ +
                      " takes no pushes: its owner's lease at the coordinator is over, and somebody else may own "
                      "it; repeat the push with the same sequence");
  problem.retry_after_s = 1;
  return problem;
}

}  // namespace chorus::parameters
