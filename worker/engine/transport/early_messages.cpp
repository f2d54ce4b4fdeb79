#include "worker/engine/transport/early_messages.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "worker/engine/transport/connection_owner.hpp"

namespace chorus::engine {

void EarlyMessages::arrived(links::FrameHeader const& header, std::span<std::byte const> payload) {
  if (is_taken(header, payload)) return;
  auto const token = header.run;
  auto const& worker = connection_.peer().worker;
  if (auto const* const retired = owner_.find_retired(token, header.epoch))
    return refuse(token, header.epoch, retired->told_to(worker));
  if (auto const most = owner_.options().early_runs; waiting_.size() >= most) {
    Failure const why{EngineErrc::aborted,
                      "more than " + std::to_string(most) + " messages of " + worker +
                          " wait for the first message call of their group here",
                      {},
                      {}};
    refuse(token, header.epoch, why);
    return owner_.message_failed(token, header.epoch, why);
  }
  waiting_.push_back({header, {payload.begin(), payload.end()}});
}

void EarlyMessages::report(std::uint64_t token, std::uint32_t epoch) {
  for (auto const& message : remove(token, epoch)) static_cast<void>(is_taken(message.header, message.payload));
}

void EarlyMessages::retire(Retired const& epoch) {
  if (!remove(epoch.token, epoch.epoch).empty())
    refuse(epoch.token, epoch.epoch, epoch.told_to(connection_.peer().worker));
}

void EarlyMessages::refuse(std::uint64_t token, std::uint32_t epoch, Failure const& why) {
  if (!connection_.is_closed())
    connection_.send_failure_notice(links::FrameType::refuse, token, epoch, to_failure_notice(why, token));
}

std::vector<EarlyMessages::Message> EarlyMessages::remove(std::uint64_t token, std::uint32_t epoch) {
  std::vector<Message> of_epoch, others;
  for (auto& message : waiting_) {
    bool const is_of_epoch = message.header.run == token && message.header.epoch == epoch;
    (is_of_epoch ? of_epoch : others).push_back(std::move(message));
  }
  waiting_ = std::move(others);
  return of_epoch;
}

bool EarlyMessages::is_taken(links::FrameHeader const& header, std::span<std::byte const> payload) {
  links::MessageFrame message{header, {}, payload.subspan(sizeof(links::MessageHead))};
  std::memcpy(&message.head, payload.data(), sizeof message.head);
  return owner_.message_frame_arrived(connection_.peer(), message);
}

}  // namespace chorus::engine
