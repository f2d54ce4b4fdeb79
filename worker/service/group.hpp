// One group in one epoch, as this member sees it: the assignment, and the order of the calls on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/pace.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"
#include "http/api/runs.hpp"
#include "http/condition.hpp"
#include "http/problem.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/failure.hpp"
#include "worker/service/identity.hpp"

namespace chorus::service {

// Into which a member cuts what it sends, unless a call says otherwise: by where the members stand, and how many
// processors this machine has.
[[nodiscard]] std::uint64_t segment_bytes_of(api::Group const& group);

// What a valid assignment says, parsed.
struct Assignment {
  api::Group group;
  std::uint64_t segment_bytes = api::default_segment_bytes;
  plan::Rank rank = 0;
  std::uint64_t token = 0;
  std::vector<engine::Peer> members;

  // Nothing if `self` is not a member. Problem invalid_field for members that cannot be.
  [[nodiscard]] static http::Checked<std::optional<Assignment>> from(api::GroupAssignment const& message,
                                                                     Identity const& self);
};

// What a call of this epoch fails with when the group goes on: epoch_fenced, or peer_lost if the workers of some ranks,
// of these incarnations, are no members any more; they are the culprits. "group g went on to epoch 4 without rank 3
// (w3)".
[[nodiscard]] engine::Failure went_on(Assignment const& assignment, api::Group const& next);

// What the coordinator is told of a call that failed because of these ranks.
[[nodiscard]] api::Trouble trouble_of(Assignment const& assignment, std::vector<plan::Rank> const& culprits);

// Which algorithm for an operation of this size: the first line of the group's table that fits (the one without a
// limit, if members cannot tell the size alike), or the one asked for by name with the root and arity of its line, if
// it has one. Problem unsupported where the table has no line for it.
[[nodiscard]] http::Checked<api::Selection> select(api::Group const& group, std::string_view op,
                                                   std::optional<std::uint64_t> bytes,
                                                   std::optional<std::string> const& algorithm);

// Calls run one after the other in the order of their arrival, which must be the same on all members. One that fails
// breaks the epoch: the members no longer know how far the others came, until the coordinator has made a new epoch.
class GroupEpoch {
 public:
  GroupEpoch(boost::asio::any_io_executor executor, Assignment assignment)
      : assignment_(std::move(assignment)),
        calls_{assignment_.group.name, assignment_.group.epoch, 0, 0},
        turns_(std::move(executor)) {}

  [[nodiscard]] Assignment const& assignment() const { return assignment_; }
  // Of the next call.
  [[nodiscard]] std::uint64_t next_sequence() const { return next_; }
  // The coordinator says something new about the same epoch: a member is lost, another table.
  void update(api::Group group) { assignment_.group = std::move(group); }

  // A call has ended well; it took so long here, waiting for the others included.
  void took(Op op, std::uint64_t bytes, double seconds);
  [[nodiscard]] Pace const& pace() const { return pace_; }
  [[nodiscard]] api::GroupCalls const& calls() const { return calls_; }

  // Why no call can run, or nothing.
  [[nodiscard]] std::optional<http::Problem> unusable() const;

  void break_epoch(std::string why);

  // A place in the order of calls. One that is given up before finished() breaks the epoch: its number is used up.
  class Turn {
   public:
    explicit Turn(GroupEpoch& epoch) : epoch_(epoch), sequence_(epoch.next_++) {}
    ~Turn();
    Turn(Turn const&) = delete;
    Turn& operator=(Turn const&) = delete;

    [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
    // Whether no earlier call is to be waited for.
    [[nodiscard]] bool has_come() const { return epoch_.serving_ == sequence_ && epoch_.broken_.empty(); }
    // When all earlier calls have ended; nothing, or why it will never be.
    boost::asio::awaitable<std::optional<http::Problem>> wait(std::chrono::steady_clock::time_point deadline);
    void finished() { finished_ = true; }

   private:
    GroupEpoch& epoch_;
    std::uint64_t const sequence_;
    bool finished_ = false;
  };

  // The run that has the turn, for abort(); 0 when there is none.
  std::uint64_t running = 0;
  // Members that the next epoch has left out.
  std::vector<plan::Rank> lost;

 private:
  Assignment assignment_;
  Pace pace_;
  api::GroupCalls calls_;
  std::uint64_t next_ = 0;     // sequence number of the next call
  std::uint64_t serving_ = 0;  // the call whose turn it is
  std::string broken_;         // why, or ""
  http::Condition turns_;
};

}  // namespace chorus::service
