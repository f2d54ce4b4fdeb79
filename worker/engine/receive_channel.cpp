#include "worker/engine/receive_channel.hpp"

#include <algorithm>
#include <cstring>

#include "worker/links/errc.hpp"

namespace chorus::engine {
namespace {

constexpr std::uint64_t stage_alignment = 16;

}  // namespace

using links::FrameHeader;
using links::FrameType;

ReceiveChannel::ReceiveChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions,
                               std::uint64_t digest)
    : state_(state), peer_(peer), digest_(digest), messages_(instructions.size()), queue_(instructions.size()) {
  EagerBudget budget(state.eager_bytes);
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    auto& message = messages_[m];
    message.instruction = instructions[m];
    auto const total = state.board.total(message.instruction);
    if (total == 0) continue;
    ++unreceived_;
    message.eager = budget.admits(total, state.program.instructions[message.instruction].chunks);
    if (!message.eager) continue;
    message.granted = total;
    message.stage_at = stage_bytes_;
    stage_bytes_ += (total + stage_alignment - 1) / stage_alignment * stage_alignment;
  }
}

void ReceiveChannel::wake(std::uint32_t m) {
  auto& message = messages_[m];
  if (message.eager) return take_from_stage(message);
  auto const ready = state_.board.ready(message.instruction);
  if (ready <= message.granted) return;
  message.granted = ready;
  if (message.queued) return;
  message.queued = true;
  queue_.push(m);
}

bool ReceiveChannel::next_grant(FrameHeader& header) {
  if (queue_.empty()) return false;
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

Status ReceiveChannel::begin(FrameHeader const& header, Scratch scratch) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, std::to_string(header.length) + " bytes of message " +
                                                 std::to_string(header.message) + " at byte " +
                                                 std::to_string(header.offset) + ": " + why);
  };
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  if (is_withdrawn_) return refuse("it was given up");
  if (header.epoch != state_.epoch) return refuse("epoch " + std::to_string(header.epoch));
  auto& message = messages_[header.message];
  auto const total = state_.board.total(message.instruction);
  if (header.offset != message.arrived) return refuse("expected byte " + std::to_string(message.arrived));
  if (header.length > total - header.offset) return refuse("the message has " + std::to_string(total) + " bytes");
  if (header.length > message.granted - header.offset)
    return refuse("granted up to byte " + std::to_string(message.granted));
  if (header.length % state_.workspace.element_bytes() != 0)
    return refuse("elements have " + std::to_string(state_.workspace.element_bytes()) + " bytes");

  auto const i = message.instruction;
  bool const in_order = state_.board.done(i) == message.arrived;
  bool const is_ready = in_order && state_.board.ready(i) >= header.offset + header.length;
  if (!is_ready)
    way_ = Way::stage;
  else
    way_ = state_.workspace.receives_as_it_is(i) ? Way::direct : Way::reduce;
  if (way_ == Way::stage && !stage_) stage_ = std::make_unique_for_overwrite<std::byte[]>(stage_bytes_);
  message_ = header.message;
  frame_bytes_ = header.length;
  frame_left_ = header.length;
  scratch_ = scratch.data();
  in_scratch_ = 0;
  return ok();
}

std::span<std::byte> ReceiveChannel::space() {
  auto const& message = messages_[message_];
  switch (way_) {
    case Way::direct:
      return state_.workspace.destination(message.instruction, frame_left_);
    case Way::reduce:
      return {scratch_ + in_scratch_, std::min(scratch_bytes - in_scratch_, frame_left_)};
    case Way::stage:
      break;
  }
  auto const in_frame = frame_bytes_ - frame_left_;
  return {stage_.get() + message.stage_at + message.arrived + in_frame, frame_left_};
}

void ReceiveChannel::filled(std::size_t bytes) {
  auto const i = messages_[message_].instruction;
  frame_left_ -= bytes;
  if (way_ == Way::direct) state_.workspace.skip_destination(i, bytes);
  if (way_ == Way::reduce) {
    in_scratch_ += bytes;
    if (frame_left_ == 0 || in_scratch_ == scratch_bytes) {
      state_.workspace.take_in(i, std::span(scratch_, in_scratch_));
      in_scratch_ = 0;
    }
  }
  if (frame_left_ == 0) end_frame();
}

void ReceiveChannel::take(std::span<std::byte const> payload) {
  auto const& message = messages_[message_];
  if (way_ == Way::stage) {
    std::memcpy(stage_.get() + message.stage_at + message.arrived, payload.data(), payload.size());
    return;
  }
  auto const at = reinterpret_cast<std::uintptr_t>(payload.data());
  if (at % state_.workspace.element_bytes() == 0) return state_.workspace.take_in(message.instruction, payload);
  while (!payload.empty()) {
    auto const part = payload.first(std::min(payload.size(), scratch_bytes));
    std::memcpy(scratch_, part.data(), part.size());
    state_.workspace.take_in(message.instruction, {scratch_, part.size()});
    payload = payload.subspan(part.size());
  }
}

void ReceiveChannel::took() {
  frame_left_ = 0;
  end_frame();
}

void ReceiveChannel::end_frame() {
  auto& message = messages_[message_];
  message.arrived += frame_bytes_;
  state_.bytes_received += frame_bytes_;
  if (message.arrived == state_.board.total(message.instruction)) --unreceived_;
  if (way_ == Way::stage)
    take_from_stage(message);
  else
    state_.board.advance(message.instruction, frame_bytes_);
}

void ReceiveChannel::take_from_stage(Message& message) {
  auto const i = message.instruction;
  auto const done = state_.board.done(i);
  auto const until = std::min(state_.board.ready(i), message.arrived);
  if (until <= done) return;
  state_.workspace.take_in(i, {stage_.get() + message.stage_at + done, until - done});
  state_.board.advance(i, until - done);
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
  return "waiting for it to open the run";
}

}  // namespace chorus::engine
