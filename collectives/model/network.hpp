// Network: a group's ranks on their network, prepared for the many queries of fold() and simulate().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/model/constants.hpp"
#include "collectives/plan/spec.hpp"
#include "collectives/topology/link_matrix.hpp"
#include "collectives/topology/locality_groups.hpp"

namespace chorus::model {

// Factor on the segment size if ranks take turns on their cores: long segments then prevent no overlap, and each
// segment costs a turn. Measurements: docs/explanation/performance.md. The costs do not have this factor, as a segment
// is only the largest unit: received segments are passed on as they are.
inline constexpr std::uint64_t crowded_segments = 4;

// The cost of a message between two ranks, and the part of its latency that delays the next message of each end.
struct Hop {
  double alpha_s, beta_s_per_byte, overhead_s;
};

// Immutable; safe to read from any thread. The number of a level's group (host to region) is its first rank.
class Network {
 public:
  // `localities` are in rank order, at least one, and outlive the network. `links`, if given, has as many workers in
  // the same order and outlives the network: messages then have the costs of their pair's link, otherwise those of
  // their level. The constants have the shared resources in both cases.
  Network(std::span<Locality const> localities, Constants const& constants,
          topology::LinkMatrix const* links = nullptr);
  Network(std::vector<Locality>&& localities, Constants const& constants,
          topology::LinkMatrix const* links = nullptr) = delete;

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(localities_.size()); }
  [[nodiscard]] std::span<Locality const> localities() const { return localities_; }
  [[nodiscard]] Constants const& constants() const { return constants_; }

  // Returns the level of two different ranks.
  [[nodiscard]] Level level(plan::Rank a, plan::Rank b) const {
    return only_level_ ? *only_level_ : topology::shared_level(groups_[a], groups_[b]);
  }
  [[nodiscard]] LinkCost const& link(plan::Rank from, plan::Rank to) const {
    return pairs_.empty() ? constants_.link(level(from, to)) : pairs_[std::size_t{from} * ranks() + to];
  }
  [[nodiscard]] Hop hop(plan::Rank from, plan::Rank to) const {
    return only_hop_ ? *only_hop_ : hop_of(link(from, to));
  }
  // Returns the given links; null: every link has the costs of its level.
  [[nodiscard]] topology::LinkMatrix const* links() const { return links_; }

  // Returns the group of a rank. `level` is not world.
  [[nodiscard]] plan::Rank group(Level level, plan::Rank rank) const {
    return groups_[rank][topology::locality_depth - 1 - static_cast<std::size_t>(level)];
  }
  [[nodiscard]] plan::Rank host(plan::Rank rank) const { return group(Level::host, rank); }

  // Returns the sizes of a level's groups, in the order of their first ranks. Groups are neighbouring ranks if ranks
  // follow locality.
  [[nodiscard]] std::vector<std::uint32_t> group_sizes(Level level) const;
  [[nodiscard]] std::uint32_t largest_group(Level level) const {
    return largest_group_[static_cast<std::size_t>(level)];
  }

  // Returns the levels whose uplinks can limit a plan: those with a limit and several groups, where a group has several
  // ranks or an uplink slower than its links.
  [[nodiscard]] std::span<Level const> limited_levels() const { return limited_levels_; }
  [[nodiscard]] double uplink_s_per_byte(Level level) const {
    return constants_.uplink_s_per_byte[static_cast<std::size_t>(level)];
  }

  // Returns true if hosts have several ranks and a limited number of cores.
  [[nodiscard]] bool shares_cores() const { return constants_.host_cores > 0 && largest_group(Level::host) > 1; }

  // Returns true if a host has more ranks than cores.
  [[nodiscard]] bool is_crowded() const {
    return constants_.host_cores > 0 && largest_group(Level::host) > constants_.host_cores;
  }

  // Returns the default segment size of schedules on this network; larger if each segment wakes its receiver.
  [[nodiscard]] std::uint64_t segment_bytes() const {
    return constants_.segment_bytes * (wake_s_ > 0 ? crowded_segments : 1);
  }

  // Returns gamma for data that is reduced as it arrives, if each rank has a vector of this size: the mean for the
  // parts in caches and in memory. Ranks that take turns on a core evict each other's data from the caches.
  [[nodiscard]] double gamma_s_per_byte(std::uint64_t vector_bytes) const;

  // Returns the core time to wake a receiver, for every receiver in every round; the latencies of links include it. 0
  // unless a host has more ranks than cores.
  [[nodiscard]] double wake_s() const { return wake_s_; }

  // Returns "host h1" or "rack r0/r3": the label after the outer labels that are not empty.
  [[nodiscard]] std::string name_of_group(Level level, plan::Rank group) const;

 private:
  [[nodiscard]] Hop hop_of(LinkCost const& cost) const {
    return {cost.alpha_s, cost.beta_s_per_byte, constants_.overhead_s(cost)};
  }

  std::span<Locality const> localities_;
  Constants constants_;
  std::vector<topology::LocalityGroups> groups_;
  std::array<std::uint32_t, uplink_levels> largest_group_{};
  std::vector<Level> limited_levels_;
  double wake_s_ = 0;
  std::optional<Level> only_level_;  // of all pairs of different ranks, if they have the same
  std::optional<Hop> only_hop_;      // set with only_level_ if no links were given
  topology::LinkMatrix const* links_;
  std::vector<LinkCost> pairs_;  // costs of the given links, row by row
};

}  // namespace chorus::model
