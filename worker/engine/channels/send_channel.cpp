#include "worker/engine/channels/send_channel.hpp"

#include <algorithm>

#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::FrameType;

namespace {

// Limit for sharing one connection between both directions; above it each direction is faster on its own
// (docs/explanation/performance.md).
constexpr std::uint64_t small_message_bytes = 16384;

}  // namespace

SendChannel::SendChannel(RunState& state, plan::Rank peer, std::vector<std::uint32_t> instructions,
                         links::Open const& open, std::string_view description, std::size_t queue_capacity,
                         Opening opening)
    : state_(state), messages_(instructions.size()), queue_(queue_capacity), peer_(peer), opening_(opening) {
  EagerBudget budget(state.eager_bytes);
  std::uint64_t bytes = 0;
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    auto& message = messages_[m];
    message.instruction = instructions[m];
    auto const total = state.board.total(message.instruction);
    bytes += total;
    message.eager = total != 0 && budget.admits(total, state.program.instructions[message.instruction].chunks);
  }
  open_bytes_ = links::encode(open, description, open_);
  begin();
  is_small_ = holds_open_ && bytes <= small_message_bytes;
}

void SendChannel::begin() {
  queue_.clear();
  is_queued = false;
  in_flight_ = unsent_ = 0;
  open_given_ = open_sent_ = false;
  bool needs_grant = false;
  for (auto& message : messages_) {
    auto const total = state_.board.total(message.instruction);
    if (total != 0) ++unsent_;
    needs_grant |= total != 0 && !message.eager;
    message.queued = false;
    message.credit = message.eager ? total : 0;
    message.taken = message.issued = 0;
  }
  holds_open_ = opening_ == Opening::with_first_message && unsent_ != 0 && !needs_grant;
}

std::uint64_t SendChannel::sendable(Message const& message) const {
  auto const free = std::min(message.credit, state_.board.ready(message.instruction));
  return std::max(free, message.taken) - message.taken;
}

bool SendChannel::next_frame(links::OutFrame& frame) {
  frame.header = {};
  frame.header.run = state_.run;
  frame.header.epoch = state_.epoch;
  if (!open_given_) {
    if (!has_frame()) return false;
    open_given_ = true;
    frame.header.type = FrameType::open;
    if (auto const lend = lends()) {
      frame.header.flags = links::lends_flag;
      open_bytes_ = links::append(*lend, open_bytes_, open_);
    }
    frame.header.length = open_bytes_;
    if (state_.envelope) {
      frame.header.flags = links::message_flag;
      frame.header.length = links::append(*state_.envelope, open_bytes_, open_);
    }
    frame.payload = std::span(open_).first(frame.header.length);
    return true;
  }
  if (in_flight_ >= state_.window || !next_data(frame)) return false;
  ++in_flight_;
  return true;
}

links::CoalescedFrame SendChannel::coalesced_frame(std::uint32_t bytes) const {
  links::CoalescedFrame coalesced_frame;
  coalesced_frame.open.type = FrameType::open;
  coalesced_frame.open.epoch = coalesced_frame.data.epoch = state_.epoch;
  coalesced_frame.open.length = open_bytes_;
  coalesced_frame.opening = std::span(open_).first(open_bytes_);
  coalesced_frame.data.length = bytes;
  return coalesced_frame;
}

void SendChannel::skip(links::Taken taken) {
  for (links::OutFrame frame; next_frame(frame);)
    if (taken == links::Taken::whole || frame.header.type == FrameType::open) frame_sent(frame.header);
}

void SendChannel::frame_sent(FrameHeader const& header) {
  if (header.type == FrameType::open) {
    open_sent_ = true;
    return;
  }
  --in_flight_;
  if (header.type == FrameType::lies) return;
  if (header.type == FrameType::wrote)
    return handed_over(header.message, header.offset - state_.board.done(messages_[header.message].instruction));
  payload_sent(header);
  handed_over(header.message, header.length);
}

void SendChannel::handed_over(std::uint32_t m, std::uint64_t bytes) {
  auto const instruction = messages_[m].instruction;
  state_.bytes_sent += bytes;
  state_.board.advance(instruction, bytes);
  if (state_.board.done(instruction) == state_.board.total(instruction)) --unsent_;
}

Status SendChannel::borrowed(links::Way) { return Error(links::LinkErrc::bad_frame, "borrow of what was never lent"); }

Status SendChannel::was_read(FrameHeader const& header) {
  return Error(links::LinkErrc::bad_frame,
               "message " + std::to_string(header.message) + " was read, though nothing was lent");
}

Status SendChannel::has_room(FrameHeader const& header, links::Place const&) {
  return Error(links::LinkErrc::bad_frame,
               "room for message " + std::to_string(header.message) + ", which is not written there");
}

Status SendChannel::granted(FrameHeader const& header) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, "grant of message " + std::to_string(header.message) + " up to byte " +
                                                 std::to_string(header.offset) + ": " + why);
  };
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  if (header.epoch != state_.epoch) return refuse("epoch " + std::to_string(header.epoch));
  auto& message = messages_[header.message];
  auto const total = state_.board.total(message.instruction);
  if (header.offset > total) return refuse("the message has " + std::to_string(total) + " bytes");
  if (header.offset <= message.credit) return refuse(std::to_string(message.credit) + " were granted before");
  message.credit = header.offset;
  wake(header.message);
  return ok();
}

// Bytes that were taken and not issued are this rank's to move; issued bytes are the peer's until the link has taken
// them or the peer has read them.
bool SendChannel::waits_for_peer() const {
  if (finished() || (holds_open_ && !open_given_ && queue_.empty())) return false;
  return !open_sent_ || in_flight_ != 0 || std::any_of(messages_.begin(), messages_.end(), [&](auto const& message) {
    bool const is_given = message.taken == message.issued && state_.board.ready(message.instruction) > message.issued;
    return is_given || message.issued > state_.board.done(message.instruction);
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
