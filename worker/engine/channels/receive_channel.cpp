#include "worker/engine/channels/receive_channel.hpp"

#include <algorithm>

#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::FrameType;

ReceiveChannel::ReceiveChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions,
                               std::uint64_t digest)
    : state_(state), messages_(instructions.size()), peer_(peer), digest_(digest), queue_(instructions.size()) {
  EagerBudget budget(state.eager_bytes);
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    auto& message = messages_[m];
    message.instruction = instructions[m];
    auto const total = state.board.total(message.instruction);
    message.eager = total != 0 && budget.admits(total, state.program.instructions[message.instruction].chunks);
    if (!message.eager) continue;
    message.stage_at = stage_bytes_;
    stage_bytes_ += EagerBudget::stage_bytes(total);
  }
  begin();
}

void ReceiveChannel::begin() {
  queue_.clear();
  is_queued = false;
  receive_connection_number = 0;
  frame_left_ = 0;
  unreceived_ = 0;
  opened_ = is_withdrawn_ = has_read_ = false;
  why_no_data_ = nullptr;
  for (auto& message : messages_) {
    auto const total = state_.board.total(message.instruction);
    if (total != 0) ++unreceived_;
    message.queued = false;
    message.granted = message.eager ? total : 0;
    message.arrived = 0;
  }
}

void ReceiveChannel::grant(std::uint32_t m, std::uint64_t up_to) {
  auto& message = messages_[m];
  if (up_to <= message.granted) return;
  message.granted = up_to;
  if (message.queued) return;
  message.queued = true;
  queue_.push(m);
}

void ReceiveChannel::opened(Borrowed) {
  opened_ = true;
  why_no_data_ = nullptr;
}

bool ReceiveChannel::next_word(FrameHeader& header) {
  if (queue_.empty()) return has_read_ && next_read(header);
  auto const m = queue_.front();
  queue_.pop();
  messages_[m].queued = false;
  header = {};
  header.type = FrameType::grant;
  header.run = state_.run;
  header.epoch = state_.epoch;
  header.message = m;
  header.offset = messages_[m].granted;
  return true;
}

Status ReceiveChannel::begin_frame(FrameHeader const& header, Scratch scratch) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, std::to_string(header.length) + " bytes of message " +
                                                 std::to_string(header.message) + " at byte " +
                                                 std::to_string(header.offset) + ": " + why);
  };
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  if (why_no_data_ != nullptr) return refuse(why_no_data_);
  if (header.epoch != state_.epoch) return refuse("epoch " + std::to_string(header.epoch));
  auto const& message = messages_[header.message];
  auto const total = state_.board.total(message.instruction);
  if (header.offset != message.arrived) return refuse("expected byte " + std::to_string(message.arrived));
  if (header.length > total - header.offset) return refuse("the message has " + std::to_string(total) + " bytes");
  if (header.length > message.granted - header.offset)
    return refuse("granted up to byte " + std::to_string(message.granted));
  if (header.length % state_.element_bytes != 0)
    return refuse("elements have " + std::to_string(state_.element_bytes) + " bytes");

  message_ = header.message;
  frame_bytes_ = header.length;
  frame_left_ = header.length;
  begun(scratch);
  return ok();
}

void ReceiveChannel::arrived() {
  auto& message = messages_[message_];
  message.arrived += frame_bytes_;
  count(frame_bytes_, message.arrived == state_.board.total(message.instruction));
}

void ReceiveChannel::count(std::uint64_t bytes, bool completes_message) {
  state_.bytes_received += bytes;
  if (completes_message) --unreceived_;
}

Status ReceiveChannel::lies(FrameHeader const& header, links::Place const&) {
  return Error(links::LinkErrc::bad_frame,
               "memory of message " + std::to_string(header.message) + ": nothing was borrowed");
}

Status ReceiveChannel::wrote(FrameHeader const& header) {
  return Error(links::LinkErrc::bad_frame,
               "message " + std::to_string(header.message) + " was written, though there was no room for it");
}

bool ReceiveChannel::waits_for_peer() const {
  return !opened_ || std::any_of(messages_.begin(), messages_.end(),
                                 [](auto const& message) { return message.granted > message.arrived; });
}

std::string ReceiveChannel::where() const {
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    auto const i = messages_[m].instruction;
    if (messages_[m].arrived < state_.board.total(i))
      return "receiving message " + std::to_string(m + 1) + " of " + std::to_string(messages_.size()) + " (step " +
             std::to_string(i + 1) + " of " + std::to_string(state_.program.instructions.size()) + ")";
  }
  for (auto const& message : messages_)
    if (opened_ && state_.board.done(message.instruction) < state_.board.total(message.instruction))
      return "taking in what it sent";
  return "waiting for it to open the run";
}

}  // namespace chorus::engine
