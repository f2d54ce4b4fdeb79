// The engine's part in messages (messages/messages.hpp).
#include <utility>

#include "worker/engine/engine.hpp"

namespace chorus::engine {

void Engine::begin_message(std::shared_ptr<MessageGroup> const& group, MessageRequest const& request,
                           MessageDone done) {
  {
    Hold const hold(*this);
    messages_.begin(group, request, std::move(done));
  }
  settle();
}

bool Engine::send_at_once(MessageGroup& group, MessageRequest const& request, MessageResult& result) {
  if (!messages_.send_at_once(group, request)) return false;
  result.source = group.membership().rank;
  result.bytes = request.sent.size();
  return true;
}

bool Engine::receive_at_once(MessageGroup& group, MessageRequest const& request, unsigned polls,
                             MessageResult& result) {
  auto const awaited = is_busy() ? std::nullopt : Messages::awaited_next(group, request);
  auto* const from = awaited ? route(group, request.peer).from : nullptr;
  auto const bytes = from != nullptr ? from->take(*awaited, request.received, polls) : std::nullopt;
  if (!bytes) return false;
  group.table.pass_next(request.peer);
  result.source = request.peer;
  result.bytes = *bytes;
  return true;
}

void Engine::close_messages(MessageGroup& group, Failure const& why) {
  {
    Hold const hold(*this);
    messages_.close(group, why);
  }
  settle();
}

// Called by a connection that is reading: settles later.
void Engine::message_arrived(Identity const& from, links::Open const& open, std::uint32_t epoch,
                             links::Envelope const& envelope, std::uint64_t run) {
  Hold const hold(*this);
  messages_.arrived(from, open, epoch, envelope, run);
}

bool Engine::message_frame_arrived(Identity const& from, links::MessageFrame const& message) {
  Hold const hold(*this);
  return messages_.arrived(from, message);
}

void Engine::watch_receives(bool all) {
  {
    Hold const hold(*this);
    messages_.watch_receives(all);
  }
  settle();
}

// A receive that begins after the end is told so by the run that cannot begin.
void Engine::watch_soon() {
  if (shut_down_)
    messages_.watch_receives(true);
  else
    surroundings_.watch_soon();
}

bool Engine::send_small_message(MessageGroup& group, links::MessageFrame const& message) {
  if (memory_is_unsound()) return false;
  auto* const send_connection = route(group, message.head.receiver_rank).to;
  return send_connection != nullptr && send_connection->send(message);
}

ConnectionTable::Route const& Engine::route(MessageGroup& group, plan::Rank peer) {
  return connections_.find_route(group.routes[peer], group.membership().members[peer]);
}

void Engine::refuse_small_messages(Identity const& peer, GroupMembership const& membership, Failure const& why) {
  for (auto& receive_connection : connections_.receives())
    if (receive_connection->peer() == peer && !receive_connection->is_closed())
      return receive_connection->refuse_small_messages(membership.token, membership.epoch, why);
}

void Engine::message_failed(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  Hold const hold(*this);
  messages_.failed(token, epoch, why);
}

void Engine::end_watch(std::uint64_t id) {
  if (auto* const run = find_run(id)) end_run(*run, std::nullopt);
}

void Engine::refuse_message(std::uint64_t run, Failure const& why) {
  for (auto& receive_connection : connections_.receives()) receive_connection->refuse_message(run, why);
}

void Engine::find_early_messages(std::uint64_t token, std::uint32_t epoch) {
  for (auto& receive_connection : connections_.receives()) {
    for (auto const run : receive_connection->early_messages(token, epoch)) receive_connection->report_message(run);
    receive_connection->report_small_messages(token, epoch);
  }
}

}  // namespace chorus::engine
