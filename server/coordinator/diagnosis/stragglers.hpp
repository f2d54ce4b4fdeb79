// Finds the members that keep the others waiting. They are only named, never removed.
//
// In an operation without a root every rank needs data of all others, so all ranks end at about the same time. A late
// rank therefore spends the shortest time in it, and the others wait for the difference.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/groups.hpp"

namespace chorus::coordinator {

// Returns by how much each rank of such an operation came later than the middle rank; 0 for ranks that were not late. A
// difference of less than 5 ms, or of less than half of the middle rank's time, is not lateness.
[[nodiscard]] std::vector<double> lateness_s(std::vector<double> const& durations_s);

// Returns text like "rank 3 (w3) comes late to 80 % of the operations, by 120 ms".
[[nodiscard]] std::string slowness(api::SlowMember const& member);

// Long-term lateness of the groups' members. A value except for its listener; used on one thread.
class Stragglers {
 public:
  // Weight of one operation against all before it: a member that is always late is named after eleven.
  static constexpr double weight = 1.0 / 16;
  static constexpr double slow_above = 0.5;   // weighted share of late operations
  static constexpr double well_below = 0.25;  // below this share the member is no longer named

  // Called when a member becomes slow, or is no longer slow.
  using Listener = std::function<void(api::Group const& group, api::SlowMember const& member, bool is_slow)>;
  void listen(Listener listener) { listener_ = std::move(listener); }

  // Takes the times by rank of such an operation, which the coordinator launched in this group and epoch.
  void finished(api::Group const& group, std::vector<double> const& durations_s);
  // Takes a member's totals for the operations that members called without the coordinator in this epoch. They are
  // evaluated when every member has reported new ones.
  void reported(api::Group const& group, std::uint32_t rank, api::GroupCalls const& calls);

  // Returns the slow members in the group's present epoch, the slowest first.
  [[nodiscard]] std::vector<api::SlowMember> slow(api::Group const& group) const;

  void forget(std::string const& group) { books_.erase(group); }

 private:
  struct Member {
    double share = 0;   // share of operations to which the member came late
    double late_s = 0;  // mean lateness in these operations
    bool is_slow = false;
    api::GroupCalls reported, looked_at;  // totals of calls without the coordinator
  };
  struct Book {
    std::uint32_t epoch = 0;
    std::vector<Member> members;  // by rank
  };

  Book& book_of(api::Group const& group);
  void look(api::Group const& group, Book& book, std::vector<double> const& durations_s, double operations);
  [[nodiscard]] static api::SlowMember show(api::Group const& group, std::uint32_t rank, Member const& member);

  std::map<std::string, Book> books_;
  Listener listener_;
};

}  // namespace chorus::coordinator
