#include "worker/engine/messages/message_transfers.hpp"

#include <utility>

#include "worker/engine/messages/small_messages.hpp"

namespace chorus::engine {

MessageTransfers::MessageTransfers(ConnectionOwner& owner, RunTable& runs, ConnectionTable& connections, RunEnds& ends,
                                   MemoryHealth const& memory, StartRun start)
    : owner_(owner),
      runs_(runs),
      connections_(connections),
      ends_(ends),
      memory_(memory),
      start_(std::move(start)),
      messages_(*this, {owner.options().eager_bytes, owner.options().early_runs, owner.options().early_bytes}) {}

std::optional<std::uint64_t> MessageTransfers::receive_at_once(MessageGroup& group, MessageRequest const& request,
                                                               unsigned polls) {
  auto const awaited = awaited_next(group, request);
  auto* const from = awaited ? route(group, request.peer).from : nullptr;
  auto const bytes = from != nullptr ? from->take(*awaited, request.received, polls) : std::nullopt;
  if (bytes) group.table.pass_next(request.peer);
  return bytes;
}

// A receive that begins after the end is told so by the run that cannot begin.
void MessageTransfers::watch_soon() {
  if (owner_.is_shut_down())
    messages_.watch_receives(true);
  else
    owner_.surroundings().watch_soon();
}

bool MessageTransfers::send_small_message(MessageGroup& group, links::MessageFrame const& message) {
  if (memory_.is_unsound()) return false;
  auto* const send_connection = route(group, message.head.receiver_rank).to;
  return send_connection != nullptr && send_connection->send(message);
}

ConnectionTable::Route const& MessageTransfers::route(MessageGroup& group, plan::Rank peer) {
  return connections_.find_route(group.routes[peer], group.membership().members[peer]);
}

void MessageTransfers::refuse_small_messages(Identity const& peer, GroupMembership const& membership,
                                             Failure const& why) {
  for (auto& receive_connection : connections_.receives())
    if (receive_connection->peer() == peer && !receive_connection->is_closed())
      return receive_connection->early_messages().refuse(membership.token, membership.epoch, why);
}

void MessageTransfers::end_watch(std::uint64_t id) {
  if (auto* const run = runs_.find(id)) ends_.end(*run, std::nullopt);
}

void MessageTransfers::refuse_message(std::uint64_t run, Failure const& why) {
  for (auto& receive_connection : connections_.receives()) receive_connection->early_runs().refuse_message(run, why);
}

void MessageTransfers::find_early_messages(std::uint64_t token, std::uint32_t epoch) {
  for (auto& receive_connection : connections_.receives()) {
    auto& early_runs = receive_connection->early_runs();
    for (auto const run : early_runs.messages(token, epoch)) early_runs.report_message(run);
    receive_connection->early_messages().report(token, epoch);
  }
}

}  // namespace chorus::engine
