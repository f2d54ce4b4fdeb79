#include "worker/parameters/shard/pushes/window.hpp"

namespace chorus::parameters {

Window::Place Window::place(Client const& client, std::uint64_t sequence) const {
  auto const found = entries_.find(client.name);
  if (found != entries_.end() && client.incarnation < found->second.incarnation) return Place::fenced;
  auto const next = next_sequence(client);
  if (sequence == next) return Place::next;
  return sequence < next ? Place::seen : Place::ahead;
}

void Window::advance(Client const& client) {
  auto& entry = entries_[client.name];
  if (client.incarnation > entry.incarnation) entry = {client.incarnation, 0};
  ++entry.next_sequence;
}

std::uint64_t Window::next_sequence(Client const& client) const {
  auto const found = entries_.find(client.name);
  return found == entries_.end() || client.incarnation > found->second.incarnation ? 0 : found->second.next_sequence;
}

}  // namespace chorus::parameters
