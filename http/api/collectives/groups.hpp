// Messages about groups: the worker of each rank, the epoch, and the decision table.
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
  // The coordinator's reaction to a lost member. "fail": the group is degraded until the next PUT. "shrink": the
  // coordinator makes a new epoch of the requested workers that are ready, at least min_ranks, and another epoch when
  // more of them become ready; likewise at the PUT. A collective that loses a member starts again in the next epoch.
  std::string on_failure = "fail";
  std::uint32_t min_ranks = 1;
  // How ranks are ordered, and roots and trees chosen. "locality": by the localities that the members report; also if
  // absent. "measured": by the links between the members, which they measure before the epoch is made. "listed": rank r
  // is the r-th of `workers`, or the r-th ready one of a group that shrinks; roots and trees follow locality.
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
  // First epoch of this incarnation's uninterrupted membership. None at members, and in older journals.
  std::optional<std::uint32_t> since_epoch;
};

// One line of the group's decision table: the algorithm for payloads up to max_bytes, or for all others if absent. The
// coordinator decides once and sends the table as data: members never choose, so they cannot choose differently.
struct Selection {
  std::string op;
  std::optional<std::uint64_t> max_bytes;
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;
  std::string reason;
};

// One line of the table for members' calls with compression "auto", for payloads up to max_bytes, or for all others if
// absent: the formats that are faster than elements.
struct CompressionSelection {
  std::string op;
  std::optional<std::string> between;  // of codes between groups: host, rack, zone or region
  std::uint32_t element_bytes = 4;     // of the tensor's dtype: 2, or 4 and more
  std::optional<std::uint64_t> max_bytes;
  std::vector<std::string> formats;  // fastest first; empty: elements are faster
  std::string reason;
};

// Quality of a ring over the ranks. With measured links, and in a dry run with links: mean time of a hop as a multiple
// of the fastest possible hop. Otherwise: mean level distance of a hop.
struct Stretch {
  // Over the workers as listed; in the order of joins if the request has a size; by locality if links are measured.
  double arrival_order = 0;
  double assigned = 0;  // over the ranks as assigned; over their positions if ranks are as listed
};

// A member that comes late to more than half of the operations without a root, in which every rank needs every other.
struct SlowMember {
  std::uint32_t rank = 0;
  std::string worker;
  double late_seconds = 0;  // lateness against the median member, mean over its late operations
  double share = 0;         // share of late operations, 0 to 1; the latest operations count most
};

// The answer of GET and PUT /v1/groups/{name} at the coordinator. The coordinator sends it to every member, too.
struct Group {
  std::string name;
  std::uint32_t epoch = 0;  // from 1; every change of membership makes a new one
  std::string state;        // "ready", or "degraded" when a member is lost
  std::vector<Member> members;
  std::vector<std::string> lost;     // ids of members that are lost
  GroupRequest requested;            // by the PUT
  std::optional<std::string> order;  // as requested, or "locality"; none at members, which do not need it
  // The rank at each position of rings, trees and grids; none: rank i is at position i.
  std::optional<std::vector<std::uint32_t>> by_position;
  Stretch stretch;
  std::vector<Selection> selection;
  // None in older journals, and where a member is of a release without codes: "auto" is refused then.
  std::optional<std::vector<CompressionSelection>> compression;
  // Segment size of the coordinator's collectives without one of their own. None in older journals, which means
  // default_segment_bytes, and at members, which derive it from their own processors.
  std::optional<std::uint64_t> segment_bytes;
  std::vector<SlowMember> slow;                // in the coordinator's answers: the slowest first
  std::optional<std::uint64_t> next_sequence;  // at a member: number of its next call
};

// PUT /v1/groups/{name} at a worker, from the coordinator only: the group for this member. A worker refuses an epoch
// below the highest that it has seen of the name.
struct GroupAssignment {
  Group group;
  std::string worker;       // the addressee
  std::string incarnation;  // of the addressee: 409 epoch_fenced at another incarnation
  std::string token;        // hex; presented by links between members in members' calls
};

struct GroupList {
  std::vector<Group> items;
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
