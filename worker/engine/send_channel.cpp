#include "worker/engine/send_channel.hpp"

#include <algorithm>

#include "worker/links/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::FrameType;

SendChannel::SendChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions,
                         links::Open const& open, std::string_view description)
    : state_(state), peer_(peer), messages_(instructions.size()), queue_(instructions.size()) {
  EagerBudget budget(state.eager_bytes);
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    auto& message = messages_[m];
    message.instruction = instructions[m];
    auto const total = state.board.total(message.instruction);
    if (total == 0) continue;
    ++unsent_;
    message.eager = budget.admits(total, state.program.instructions[message.instruction].chunks);
    if (message.eager) message.credit = total;
  }
  open_bytes_ = links::encode(open, description, open_);
}

std::uint64_t SendChannel::sendable(Message const& message) const {
  return std::min(message.credit, state_.board.ready(message.instruction)) - message.issued;
}

void SendChannel::wake(std::uint32_t m) {
  auto& message = messages_[m];
  if (message.queued || sendable(message) == 0) return;
  message.queued = true;
  queue_.push(m);
}

bool SendChannel::next_frame(links::OutFrame& frame) {
  frame.header = {};
  frame.header.run = state_.run;
  frame.header.epoch = state_.epoch;
  if (!open_given_) {
    open_given_ = true;
    frame.header.type = FrameType::open;
    frame.header.length = open_bytes_;
    frame.payload = std::span(open_).first(open_bytes_);
    return true;
  }
  while (!queue_.empty() && in_flight_ < state_.window) {
    auto const m = queue_.front();
    auto& message = messages_[m];
    auto const bytes = std::min(sendable(message), state_.segment_bytes);
    if (bytes == 0) {
      queue_.pop();
      message.queued = false;
      continue;
    }
    frame.payload = state_.workspace.source(message.instruction, bytes);
    frame.header.type = FrameType::data;
    frame.header.message = m;
    frame.header.length = static_cast<std::uint32_t>(frame.payload.size());
    frame.header.offset = message.issued;
    state_.workspace.skip_source(message.instruction, frame.payload.size());
    message.issued += frame.payload.size();
    ++in_flight_;
    return true;
  }
  return false;
}

void SendChannel::frame_sent(FrameHeader const& header) {
  if (header.type == FrameType::open) {
    open_sent_ = true;
    return;
  }
  auto const instruction = messages_[header.message].instruction;
  --in_flight_;
  state_.bytes_sent += header.length;
  state_.board.advance(instruction, header.length);
  if (state_.board.done(instruction) == state_.board.total(instruction)) --unsent_;
}

Status SendChannel::granted(FrameHeader const& header) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, "grant of message " + std::to_string(header.message) + " up to byte " +
                                                 std::to_string(header.offset) + ": " + why);
  };
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  auto& message = messages_[header.message];
  auto const total = state_.board.total(message.instruction);
  if (header.offset > total) return refuse("the message has " + std::to_string(total) + " bytes");
  if (header.offset <= message.credit) return refuse(std::to_string(message.credit) + " were granted before");
  message.credit = header.offset;
  wake(header.message);
  return ok();
}

bool SendChannel::waits_for_peer() const {
  if (finished()) return false;
  return !open_sent_ || in_flight_ != 0 || std::any_of(messages_.begin(), messages_.end(), [&](auto const& message) {
    return state_.board.ready(message.instruction) > message.issued;
  });
}

std::string SendChannel::where() const {
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    auto const i = messages_[m].instruction;
    if (state_.board.done(i) < state_.board.total(i))
      return "sending message " + std::to_string(m + 1) + " of " + std::to_string(messages_.size()) + " (step " +
             std::to_string(i + 1) + " of " + std::to_string(state_.program.instructions.size()) + ")";
  }
  return finished() ? "what it sent was on its way" : "opening the run";
}

}  // namespace chorus::engine
