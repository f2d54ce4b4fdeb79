// Groups: who is which rank, since which epoch, and what is chosen for which size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/locality.hpp"

namespace chorus::api {

// PUT /v1/groups/{name}: exactly one of the two.
struct GroupRequest {
  std::optional<std::vector<std::string>> workers;  // ids, in any order unless `order` is "listed"
  std::optional<std::uint32_t> size;                // any n ready workers
  // What becomes of the group when a member is lost: "fail" leaves it degraded until it is PUT again. "shrink" makes a
  // new epoch of those that are ready, at least min_ranks of them, and another one when more of those that were asked
  // for are there; also at the PUT. A collective that loses a member is begun again in the next epoch.
  std::string on_failure = "fail";
  std::uint32_t min_ranks = 1;
  // By what ranks are ordered, and roots and trees chosen: "locality", what the members say of where they stand, which
  // none means too; "measured": by the links between them, which they measure before the epoch is made. "listed": rank
  // r is the r-th of `workers`, of a group that shrinks the r-th that is ready; roots and trees follow locality.
  std::optional<std::string> order;

  friend bool operator==(GroupRequest const&, GroupRequest const&) = default;
};

struct RoleInAlgorithm {
  std::string algorithm;
  std::string role;  // "root", "interior", "leaf", "member"
  std::vector<std::uint32_t> sends_to;
  std::vector<std::uint32_t> receives_from;
};

struct Member {
  std::uint32_t rank = 0;
  std::string worker;
  std::string incarnation;
  std::string url;
  Locality locality;
  std::vector<RoleInAlgorithm> roles;
  // The epoch that this incarnation has been a member since without a break. None at members, and in older journals.
  std::optional<std::uint32_t> since_epoch;
};

// One line of the group's decision table: for payloads up to max_bytes (none: for all others) use this. Decided once,
// by the coordinator, and shipped as data: members never choose for themselves, so they cannot choose differently.
struct Selection {
  std::string op;
  std::optional<std::uint64_t> max_bytes;
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;
  std::string reason;
};

// Of a group whose ranks follow measured links, and of a dry run with links: the mean time of a hop of a ring as a
// multiple of the fastest hop that there is. Of other groups: its mean level distance.
struct Stretch {
  // Over the workers as they were listed, of those taken by number as they joined; of measured groups by locality.
  double arrival_order = 0;
  double assigned = 0;  // over the ranks as assigned; where they are as listed, over their positions
};

// A member that comes late to more than half of the operations without a root, in which everybody needs everybody.
struct SlowMember {
  std::uint32_t rank = 0;
  std::string worker;
  double late_seconds = 0;  // later than the middle member, mean of the operations to which it came late
  double share = 0;         // of the operations, 0 to 1; the latest count most
};

// The answer of GET and PUT /v1/groups/{name} at the coordinator, and what it pushes to every member with the same
// path.
struct Group {
  std::string name;
  std::uint32_t epoch = 0;  // from 1; every change of membership makes a new one
  std::string state;        // "ready", or "degraded" when a member is lost
  std::vector<Member> members;
  std::vector<std::string> lost;     // ids of members that are lost
  GroupRequest requested;            // by the PUT
  std::optional<std::string> order;  // as requested, or "locality"; none at members, which have no use of it
  // The rank at each position of rings, trees and grids; none: rank i is at position i.
  std::optional<std::vector<std::uint32_t>> by_position;
  Stretch stretch;
  std::vector<Selection> selection;
  // Into which members cut what they send in collectives of the coordinator, unless these say otherwise; none, of older
  // journals: default_segment_bytes. None at members, which count by their own processors.
  std::optional<std::uint64_t> segment_bytes;
  std::vector<SlowMember> slow;                // of those that ask the coordinator: the slowest first
  std::optional<std::uint64_t> next_sequence;  // at members: of this one's next call
};

// PUT /v1/groups/{name} at a worker, from the coordinator only: the group as this member is to see it. A worker refuses
// an epoch below the highest that it has seen of the name.
struct GroupAssignment {
  Group group;
  std::string worker;       // the addressee, with
  std::string incarnation;  // ... this incarnation: 409 epoch_fenced otherwise
  std::string token;        // hex; presented by links between members for calls that no coordinator launched
};

struct GroupList {
  std::vector<Group> items;
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
