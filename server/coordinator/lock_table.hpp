// Who may write which tensor now: collectives that touch the same tensor of the same worker run one after the other, in
// the order in which they were asked for; all others run at once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace chorus::coordinator {

// A ticket holds all of its keys or none. Every ticket stands in the queues of all its keys from the beginning, so the
// order is the same in every queue: no two tickets can wait for each other.
class LockTable {
 public:
  using Ticket = std::uint64_t;

  [[nodiscard]] Ticket enter(std::vector<std::string> keys);
  [[nodiscard]] bool holds(Ticket ticket) const;
  // Also for one that still waits: it leaves the queues.
  void leave(Ticket ticket);

  [[nodiscard]] bool empty() const { return keys_of_.empty(); }

 private:
  Ticket next_ = 0;
  std::map<std::string, std::deque<Ticket>> queues_;
  std::map<Ticket, std::vector<std::string>> keys_of_;
};

}  // namespace chorus::coordinator
