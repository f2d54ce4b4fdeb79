// Locks of tensors. Collectives that touch the same tensor of the same worker run one after the other, in the order of
// their requests; all others run at once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace chorus::coordinator {

// A ticket holds all of its keys or none. A ticket enters the queues of all its keys at once, so the order is the same
// in every queue, and no two tickets can wait for each other.
class LockTable {
 public:
  using Ticket = std::uint64_t;

  [[nodiscard]] Ticket enter(std::vector<std::string> keys);
  [[nodiscard]] bool holds(Ticket ticket) const;
  // Removes a ticket from its queues, also one that still waits.
  void leave(Ticket ticket);

  [[nodiscard]] bool empty() const { return keys_of_.empty(); }

 private:
  Ticket next_ = 0;
  std::map<std::string, std::deque<Ticket>> queues_;
  std::map<Ticket, std::vector<std::string>> keys_of_;
};

}  // namespace chorus::coordinator
