// One epoch of a group on this member: the assignment, and the order of its calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "collectives/core/compression.hpp"
#include "collectives/core/pace.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/json/problem.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/failure/failure.hpp"
#include "worker/engine/failure/retired.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Default segment size of a member's calls, chosen by the localities of the members and the number of processors here.
[[nodiscard]] std::uint64_t segment_bytes_of(api::Group const& group);

// Returns the spec with the group's positions, if its algorithm has a use for them: see plan::with_positions().
[[nodiscard]] plan::Spec positioned(plan::Spec spec, api::Group const& group);

// The parsed contents of a valid assignment.
struct Assignment {
  api::Group group;
  std::uint64_t segment_bytes = api::default_segment_bytes;
  plan::Rank rank = 0;
  std::uint64_t token = 0;
  std::vector<engine::Peer> members;

  // Empty if `self` is not a member. Problem invalid_field for impossible members.
  [[nodiscard]] static http::Checked<std::optional<Assignment>> from(api::GroupAssignment const& message,
                                                                     Identity const& self);
};

// The failure of calls of this epoch when the group has a new one: peer_lost with the lost ranks as culprits if workers
// of these incarnations are no longer members, otherwise epoch_fenced. "group g went on to epoch 4 without rank 3
// (w3)". An epoch without members is a deleted group.
[[nodiscard]] engine::Failure superseded_by(Assignment const& assignment, api::Group const& next);

// After a failed call: members that have ended their part of it well, and call again, hear of it at once.
[[nodiscard]] engine::Retired retired_by(http::Problem const& why, Assignment const& assignment);

// The report to the coordinator about a call that failed because of these ranks.
[[nodiscard]] api::Trouble trouble_of(Assignment const& assignment, std::vector<plan::Rank> const& culprits);

// The algorithm for an operation of this size: from the first fitting line of the group's table, or from the line
// without a limit if the members cannot all tell the size. An algorithm asked for by name gets the root and arity of
// its line, if it has one. A reduction of codes gets an algorithm that adds them at one place; codes between groups get
// one that has them, with the sizes of the groups, unless all members are in one group. A large average gets one that
// needs no wider numbers (`is_large_average`). Problem unsupported if the table has no line for it, or if there are no
// such codes.
[[nodiscard]] http::Checked<api::Selection> select(api::Group const& group, std::string_view op,
                                                   std::optional<std::uint64_t> bytes,
                                                   std::optional<std::string> const& algorithm,
                                                   std::optional<Compression> const& compression = std::nullopt,
                                                   bool is_large_average = false);

// A call whose compression is to be decided. Members pass the same.
struct CompressionQuestion {
  Op op = Op::all_reduce;
  ReduceOp reduce = ReduceOp::sum;
  Dtype dtype = Dtype::f32;
  std::optional<std::uint64_t> bytes;  // none: not every member can tell the size
  bool shares_memory = false;          // all members: nothing is sent, and codes would gain nothing
};

// What the call sends: the compression that is asked for; of an automatic one the fastest format by the group's table
// that is allowed and that the dtype has. Nothing: elements, as if no compression were asked for. Problem unsupported,
// for automatic ones: an operation or reduction without codes, a group without that table, and no codes between the
// groups.
[[nodiscard]] http::Checked<std::optional<Compression>> decide_compression(api::Group const& group,
                                                                           CompressionQuestion const& call,
                                                                           std::optional<CompressionWish> const& wish);

// Runs calls one after the other in the order of arrival, which must be the same on all members. A failed call breaks
// the epoch: members no longer know how far the others are, until the coordinator makes a new epoch.
class GroupEpoch {
 public:
  GroupEpoch(boost::asio::any_io_executor executor, Assignment assignment)
      : assignment_(std::move(assignment)),
        calls_{assignment_.group.name, assignment_.group.epoch, 0, 0},
        turns_(std::move(executor)) {}

  [[nodiscard]] Assignment const& assignment() const { return assignment_; }
  // Sequence number of the next call.
  [[nodiscard]] std::uint64_t next_sequence() const { return next_; }
  // The coordinator has changed its description of this epoch: a member is lost, or the table is new.
  void update(api::Group group) { assignment_.group = std::move(group); }

  // Counts a call that has ended well; `seconds` includes waiting for the other members.
  void took(Op op, std::uint64_t bytes, double seconds);
  [[nodiscard]] Pace const& pace() const { return pace_; }
  [[nodiscard]] api::GroupCalls const& calls() const { return calls_; }

  // Why no call can run; empty if calls can.
  [[nodiscard]] std::optional<http::Problem> unusable() const;

  void break_epoch(std::string why);

  // A place in the order of calls. Destroying it before finished() breaks the epoch, because its number is used up.
  class Turn {
   public:
    explicit Turn(GroupEpoch& epoch) : epoch_(epoch), sequence_(epoch.next_++) {}
    ~Turn();
    Turn(Turn const&) = delete;
    Turn& operator=(Turn const&) = delete;

    [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
    // True if no earlier call is still to be waited for.
    [[nodiscard]] bool has_come() const { return epoch_.serving_ == sequence_ && epoch_.broken_.empty(); }
    // Waits until all earlier calls have ended. Empty, or why that will never happen.
    boost::asio::awaitable<std::optional<http::Problem>> wait(std::chrono::steady_clock::time_point deadline);
    void finished() { finished_ = true; }

   private:
    GroupEpoch& epoch_;
    std::uint64_t const sequence_;
    bool finished_ = false;
  };

  // Number of the current run, for abort(); 0 if there is none.
  std::uint64_t running = 0;
  // Members that the next epoch has left out.
  std::vector<plan::Rank> lost;

 private:
  Assignment assignment_;
  Pace pace_;
  api::GroupCalls calls_;
  std::uint64_t next_ = 0;     // sequence number of the next call
  std::uint64_t serving_ = 0;  // the call whose turn it is
  std::string broken_;         // the reason, or ""
  http::Condition turns_;
};

}  // namespace chorus::service
