// Which members keep the others waiting. Nobody is ended for it: they are named.
//
// An operation without a root, in which everybody needs something of everybody, ends for all at about the same time: so
// whoever is late is in it for the shortest time, and the others for as much longer as they waited.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "http/api/groups.hpp"
#include "http/api/membership.hpp"

namespace chorus::coordinator {

// By how much each rank of such an operation came later than the middle one, 0 for those that did not: less than 5 ms,
// or than half of what the middle one was in the operation, is no lateness.
[[nodiscard]] std::vector<double> lateness_s(std::vector<double> const& durations_s);

// "rank 3 (w3) comes late to 80 % of the operations, by 120 ms"
[[nodiscard]] std::string slowness(api::SlowMember const& member);

// What the groups' members are like in the long run. A value but for its listener; one thread.
class Stragglers {
 public:
  // How much one operation counts against all before it: a member that is always late is named after eleven.
  static constexpr double weight = 1.0 / 16;
  static constexpr double slow_above = 0.5;   // of the operations, weighted
  static constexpr double well_below = 0.25;  // ... and named no longer

  // A member has become slow, or is no longer.
  using Listener = std::function<void(api::Group const& group, api::SlowMember const& member, bool is_slow)>;
  void listen(Listener listener) { listener_ = std::move(listener); }

  // Such an operation of this group and epoch that the coordinator launched; by rank.
  void finished(api::Group const& group, std::vector<double> const& durations_s);
  // What a member says of the operations that the members do without the coordinator, all of the epoch so far. They are
  // looked at when every member has said something new.
  void reported(api::Group const& group, std::uint32_t rank, api::GroupCalls const& calls);

  // In the group's present epoch, the slowest first.
  [[nodiscard]] std::vector<api::SlowMember> slow(api::Group const& group) const;

  void forget(std::string const& group) { books_.erase(group); }

 private:
  struct Member {
    double share = 0;   // of operations to which it came late
    double late_s = 0;  // mean of those
    bool is_slow = false;
    api::GroupCalls reported, looked_at;  // of the calls without the coordinator
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
