// The receiving end's part with small messages: reports them, or keeps them until this rank begins with the messages of
// their epoch.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/receive_connection.hpp"

namespace chorus::engine {

using links::FrameHeader;

void ReceiveConnection::refuse_small_messages(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  if (!is_closed()) send_failure_notice(links::FrameType::refuse, token, epoch, to_failure_notice(why, token));
}

bool ReceiveConnection::report(FrameHeader const& header, std::span<std::byte const> payload) {
  links::MessageFrame message{header, {}, payload.subspan(sizeof(links::MessageHead))};
  std::memcpy(&message.head, payload.data(), sizeof message.head);
  return owner_.message_frame_arrived(peer(), message);
}

std::optional<std::size_t> ReceiveConnection::take(links::MessageFrame const& awaited, std::span<std::byte> to,
                                                   unsigned polls) {
  links::MessageFrame message;
  if (link() == nullptr || is_closing() || link()->look_at_message(message, polls) != links::Link::Next::message)
    return std::nullopt;
  auto expected = awaited.header;
  expected.length = message.header.length;
  if (message.header != expected || message.head != awaited.head || message.content.size() > to.size())
    return std::nullopt;
  std::copy(message.content.begin(), message.content.end(), to.begin());
  if (!link()->pass_message(message)) return std::nullopt;
  frame_moved();
  counters_.received(message.header.length);
  return message.content.size();
}

void ReceiveConnection::message_arrived() {
  sink_ = Sink::nowhere;
  auto const payload = std::span<std::byte const>(*scratch_).first(message_.length);
  if (report(message_, payload)) return;
  auto const token = message_.run;
  if (auto const* const retired = owner_.find_retired(token, message_.epoch))
    return refuse_small_messages(token, message_.epoch, retired->told_to(peer().worker));
  if (auto const most = owner_.options().early_runs; early_small_.size() >= most)
    return refuse_small_messages(token, message_.epoch,
                                 {EngineErrc::aborted,
                                  "more than " + std::to_string(most) + " messages of " + peer().worker +
                                      " wait for the first message call of their group here",
                                  {},
                                  {}});
  early_small_.push_back({message_, {payload.begin(), payload.end()}});
}

void ReceiveConnection::report_small_messages(std::uint64_t token, std::uint32_t epoch) {
  std::vector<EarlyMessage> of_epoch, others;
  for (auto& early : early_small_) {
    bool const is_of_epoch = early.header.run == token && early.header.epoch == epoch;
    (is_of_epoch ? of_epoch : others).push_back(std::move(early));
  }
  early_small_ = std::move(others);
  for (auto const& early : of_epoch) static_cast<void>(report(early.header, early.payload));
}

}  // namespace chorus::engine
