#include "worker/engine/channels/host_receive_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace chorus::engine {

HostReceiveChannel::HostReceiveChannel(RunState& state, Workspace& workspace, plan::Rank peer,
                                       std::vector<std::uint32_t> instructions, std::uint64_t digest)
    : ReceiveChannel(state, peer, std::move(instructions), digest), workspace_(workspace) {}

void HostReceiveChannel::wake(std::uint32_t m) {
  auto& message = messages_[m];
  if (message.eager) return take_from_stage(message);
  grant(m, state_.board.ready(message.instruction));
}

void HostReceiveChannel::begun(Scratch scratch) {
  auto const& message = messages_[message_];
  auto const i = message.instruction;
  bool const in_order = state_.board.done(i) == message.arrived;
  bool const is_ready = in_order && state_.board.ready(i) >= message.arrived + frame_bytes_;
  if (!is_ready)
    way_ = Way::stage;
  else
    way_ = workspace_.receives_as_it_is(i) ? Way::direct : Way::reduce;
  if (way_ == Way::stage && !stage_) stage_ = std::make_unique_for_overwrite<std::byte[]>(stage_bytes());
  scratch_ = scratch.data();
  in_scratch_ = 0;
}

std::span<std::byte> HostReceiveChannel::space() {
  auto const& message = messages_[message_];
  switch (way_) {
    case Way::direct:
      return workspace_.destination(message.instruction, frame_left_);
    case Way::reduce:
      return {scratch_ + in_scratch_, std::min(scratch_bytes - in_scratch_, frame_left_)};
    case Way::stage:
      break;
  }
  auto const in_frame = frame_bytes_ - frame_left_;
  return {stage_.get() + message.stage_at + message.arrived + in_frame, frame_left_};
}

void HostReceiveChannel::filled(std::size_t bytes) {
  auto const i = messages_[message_].instruction;
  frame_left_ -= bytes;
  if (way_ == Way::direct) workspace_.skip_destination(i, bytes);
  if (way_ == Way::reduce) {
    in_scratch_ += bytes;
    if (frame_left_ == 0 || in_scratch_ == scratch_bytes) {
      workspace_.take_in(i, std::span(scratch_, in_scratch_));
      in_scratch_ = 0;
    }
  }
  if (frame_left_ == 0) end_frame();
}

void HostReceiveChannel::take(std::span<std::byte const> payload) {
  auto const& message = messages_[message_];
  if (way_ == Way::stage) {
    std::memcpy(stage_.get() + message.stage_at + message.arrived, payload.data(), payload.size());
    return;
  }
  auto const at = reinterpret_cast<std::uintptr_t>(payload.data());
  if (at % state_.element_bytes == 0) return workspace_.take_in(message.instruction, payload);
  while (!payload.empty()) {
    auto const part = payload.first(std::min(payload.size(), scratch_bytes));
    std::memcpy(scratch_, part.data(), part.size());
    workspace_.take_in(message.instruction, {scratch_, part.size()});
    payload = payload.subspan(part.size());
  }
}

void HostReceiveChannel::took() {
  frame_left_ = 0;
  end_frame();
}

void HostReceiveChannel::end_frame() {
  arrived();
  auto& message = messages_[message_];
  if (way_ == Way::stage)
    take_from_stage(message);
  else
    state_.board.advance(message.instruction, frame_bytes_);
}

void HostReceiveChannel::take_from_stage(Message& message) {
  auto const i = message.instruction;
  auto const done = state_.board.done(i);
  auto const until = std::min(state_.board.ready(i), message.arrived);
  if (until <= done) return;
  workspace_.take_in(i, {stage_.get() + message.stage_at + done, until - done});
  state_.board.advance(i, until - done);
}

}  // namespace chorus::engine
