#include "server/coordinator/collectives/lock_table.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::coordinator {

LockTable::Ticket LockTable::enter(std::vector<std::string> keys) {
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  auto const ticket = next_++;
  for (auto const& key : keys) queues_[key].push_back(ticket);
  keys_of_.emplace(ticket, std::move(keys));
  return ticket;
}

bool LockTable::holds(Ticket ticket) const {
  auto const keys = keys_of_.find(ticket);
  CHORUS_ASSERT(keys != keys_of_.end(), "a ticket is good until it has left");
  return std::ranges::all_of(keys->second, [&](auto const& key) { return queues_.at(key).front() == ticket; });
}

void LockTable::leave(Ticket ticket) {
  auto const keys = keys_of_.find(ticket);
  CHORUS_ASSERT(keys != keys_of_.end(), "a ticket leaves once");
  for (auto const& key : keys->second) {
    auto const queue = queues_.find(key);
    std::erase(queue->second, ticket);
    if (queue->second.empty()) queues_.erase(queue);
  }
  keys_of_.erase(keys);
}

}  // namespace chorus::coordinator
