#include "worker/engine/transport/connection_table.hpp"

#include <utility>

#include "worker/engine/transport/run_on_links.hpp"
#include "worker/links/two_way.hpp"

namespace chorus::engine {
namespace {

bool is_open_with(Peer const& peer, Connection const& connection) {
  return !connection.is_closed() && connection.peer().worker == peer.worker &&
         connection.peer().incarnation == peer.incarnation;
}

}  // namespace

ReceiveConnection& ConnectionTable::adopt(std::shared_ptr<links::Link> link, Identity peer, bool lends,
                                          std::shared_ptr<links::Link> back) {
  ++changes_;
  auto& receive_connection =
      *receives_.emplace_back(std::make_unique<ReceiveConnection>(owner_, std::move(peer), next_receive_++));
  receive_connection.attach(std::move(link), lends);
  if (back) {
    auto send_connection = std::make_unique<SendConnection>(owner_, receive_connection.peer(), std::string());
    sends_.emplace(next_send_++, std::move(send_connection))
        .first->second->attach(std::move(back), false, Connection::Place::beside);
  }
  return receive_connection;
}

bool ConnectionTable::awaits(std::uint64_t number) const {
  auto const found = sends_.find(number);
  return found != sends_.end() && !found->second->is_closed();
}

void ConnectionTable::dialed(std::uint64_t number, Result<std::shared_ptr<links::Link>> link, bool lends,
                             std::shared_ptr<links::Link> back) {
  ++changes_;
  auto& send_connection = *sends_.find(number)->second;
  if (link.has_value())
    send_connection.attach(std::move(*link), lends);
  else if (!dials_again(number, send_connection))
    send_connection.fail(link.error());
  if (back)
    receives_.emplace_back(std::make_unique<ReceiveConnection>(owner_, send_connection.peer(), next_receive_++))
        ->attach(std::move(back), false, Connection::Place::beside);
}

bool ConnectionTable::dials_again(std::uint64_t number, SendConnection& send_connection) {
  auto const now = surroundings_.now();
  auto const* const waits = now < send_connection.dialed_until ? nullptr : send_connection.last_to_wait();
  if (waits == nullptr || waits->spec().deadline <= now) return false;
  auto const& [worker, incarnation] = send_connection.peer();
  auto const rank = rank_of(waits->spec(), worker, incarnation);
  if (!rank) return false;
  send_connection.dialed_until = waits->spec().deadline;
  surroundings_.dial(number, waits->spec().members[*rank], send_connection.dialed_until);
  return true;
}

SendConnection& ConnectionTable::to(Peer const& peer, TimePoint deadline) {
  auto* const found = find_to(peer);
  return found != nullptr ? *found : dial(peer, deadline);
}

SendConnection& ConnectionTable::for_channel(SendChannel const& channel, Peer const& peer, TimePoint deadline) {
  auto* const found = find_for(channel, peer);
  return found != nullptr ? *found : dial(peer, deadline);
}

SendConnection* ConnectionTable::find_for(SendChannel const& channel, Peer const& peer) {
  return channel.is_small() ? find_for_small(peer) : find_to(peer);
}

SendConnection* ConnectionTable::find_for_small(Peer const& peer) {
  if (links::is_for_small(peer.worker, worker_))
    for (auto found = sends_.rbegin(); found != sends_.rend(); ++found)
      if (found->second->is_accepted() && is_open_with(peer, *found->second)) return found->second.get();
  return find_to(peer);
}

SendConnection* ConnectionTable::find_to(Peer const& peer) {
  for (auto& [number, send_connection] : sends_)
    if (is_open_with(peer, *send_connection) && send_connection->url() == peer.url) return send_connection.get();
  return nullptr;
}

ReceiveConnection* ConnectionTable::find_from(Peer const& peer) {
  for (auto& receive_connection : receives_)
    if (is_open_with(peer, *receive_connection)) return receive_connection.get();
  return nullptr;
}

void ConnectionTable::look_for_route(Route& known, Peer const& peer) {
  known = {nullptr, nullptr, changes_};
  if (!is_fenced({peer.worker, peer.incarnation})) known = {find_for_small(peer), find_from(peer), changes_};
}

SendConnection& ConnectionTable::dial(Peer const& peer, TimePoint deadline) {
  ++changes_;
  auto const number = next_send_++;
  auto& send_connection =
      *sends_
           .emplace(number, std::make_unique<SendConnection>(owner_, Identity{peer.worker, peer.incarnation}, peer.url))
           .first->second;
  send_connection.dialed_until = deadline;
  traffic_.of(peer.worker).dialed();
  surroundings_.dial(number, peer, deadline);
  return send_connection;
}

void ConnectionTable::fence(std::string const& worker, std::uint64_t incarnation) {
  ++changes_;
  current_incarnation_[worker] = incarnation;
  auto const is_old = [&](Connection const& c) {
    return c.peer().worker == worker && c.peer().incarnation != incarnation;
  };
  for (auto& receive_connection : receives_)
    if (is_old(*receive_connection))
      receive_connection->refuse_link(EngineErrc::epoch_fenced, "a newer incarnation is known");
  for (auto& [number, send_connection] : sends_)
    if (is_old(*send_connection))
      send_connection->fail(Error(EngineErrc::epoch_fenced, worker + " has a newer incarnation"));
}

bool ConnectionTable::is_fenced(Identity const& peer) const {
  auto const current = current_incarnation_.find(peer.worker);
  return current != current_incarnation_.end() && current->second != peer.incarnation;
}

void ConnectionTable::fail_all(Error const& why) {
  for (auto& [number, send_connection] : sends_) send_connection->fail(why);
  for (auto& receive_connection : receives_) receive_connection->fail(why);
}

void ConnectionTable::reap() {
  ++changes_;
  std::erase_if(sends_, [](auto const& entry) { return entry.second->is_closed(); });
  std::erase_if(receives_, [](auto const& receive_connection) { return receive_connection->is_closed(); });
}

}  // namespace chorus::engine
