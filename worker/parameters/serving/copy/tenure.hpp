// What this worker may do with its copy of a shard, and why not: the role and epoch of the last placement, the owner's
// lease, and whether the copy is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/api/parameters/parameters.hpp"
#include "http/json/problem.hpp"
#include "worker/parameters/serving/copy/owner_lease.hpp"

namespace chorus::parameters {

// Used on the control thread.
class Tenure {
 public:
  enum class Role { owner, backup };

  // title: of the shard, for people. lease: outlives this object; null: owners need no lease.
  Tenure(std::string title, OwnerLease const* lease, api::ShardAssignment const& assignment);

  [[nodiscard]] std::string const& title() const { return title_; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] bool is_owner() const { return role_ == Role::owner; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] bool is_closed() const { return closed_.has_value(); }
  // Returns true for an owner, unless a backup has heard of a later epoch.
  [[nodiscard]] bool serves() const { return is_owner() && !is_fenced_; }
  // Returns true for an owner whose ownership the coordinator has not confirmed in the present term of the lease, or
  // that is fenced.
  [[nodiscard]] bool is_unconfirmed() const;
  // Returns true for an owner that takes no pushes: it is unconfirmed, or its lease is over by its own clock.
  [[nodiscard]] bool is_suspended() const;

  // Problems: why the shard was closed; misdirected.
  [[nodiscard]] std::optional<http::Problem> why_not_serving() const;
  // Returns the reason why a backup takes nothing from the owner of this epoch. Problems: why the shard was closed;
  // unavailable for an epoch that is not known here yet; epoch_fenced.
  [[nodiscard]] std::optional<http::Problem> why_not_following(std::uint32_t epoch) const;
  // Problem: epoch_fenced for a placement of an earlier epoch.
  [[nodiscard]] std::optional<http::Problem> why_outdated(std::uint32_t epoch) const;
  [[nodiscard]] http::Problem closed_or_misdirected() const { return closed_ ? *closed_ : misdirected(); }
  [[nodiscard]] http::Problem suspended() const;

  // Begins the epoch of a newer placement, in which no backup has fenced the owner.
  void begin(std::uint32_t epoch);
  void set_role(Role role) { role_ = role; }
  void set_complete(bool is_complete) { is_complete_ = is_complete; }
  // The coordinator has confirmed the ownership.
  void confirm(api::ShardAssignment const& assignment);
  // A backup has heard of a later epoch.
  void fence() { is_fenced_ = true; }
  void close(http::Problem why) { closed_ = std::move(why); }

 private:
  [[nodiscard]] http::Problem misdirected() const;

  std::string const title_;
  OwnerLease const* const lease_;
  Role role_;
  std::uint32_t epoch_;
  std::uint64_t term_ = 0;  // term of the lease in which the coordinator has last confirmed the ownership
  bool is_complete_;
  bool is_fenced_ = false;
  std::optional<http::Problem> closed_;
};

}  // namespace chorus::parameters
