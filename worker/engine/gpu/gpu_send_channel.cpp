#include "worker/engine/gpu/gpu_send_channel.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/transport/send_connection.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {
namespace {

// Without blocks each part costs a frame, a kernel and an answer, as much time as some tens of MiB take on a device. So
// a part is a quarter of the message, but at least this many segments, usually 4 MiB.
constexpr std::uint64_t segments_per_part = 16;
constexpr std::uint64_t parts = 4;
// A frame costs its receiver a copy to the device and a few calls of the driver. So frames of a long message have up to
// eight segments.
constexpr std::uint64_t segments_per_frame_max = 8;
constexpr std::uint64_t frames_per_message = 16;

}  // namespace

GpuSendChannel::GpuSendChannel(RunState& state, DeviceWork& device, std::uint32_t channel, plan::Rank peer,
                               std::vector<std::uint32_t> instructions, links::Open const& open,
                               std::string_view description, ReceiveChannel const* back)
    : SendChannel(state, peer, instructions, open, description,
                  std::max<std::size_t>(instructions.size(), ChannelStaging::send_blocks_max), Opening::at_once),
      device_(device),
      channel_(channel),
      back_(back),
      waiting_(instructions.size()) {}

void GpuSendChannel::list(std::uint32_t m, IndexQueue& queue) {
  auto& message = messages_[m];
  if (message.queued || sendable(message) == 0) return;
  message.queued = true;
  queue.push(m);
}

void GpuSendChannel::wake(std::uint32_t m) {
  if (mode_ == Mode::writes) return write(m);
  list(m, mode_ == Mode::in_place ? queue_ : waiting_);
  if (mode_ == Mode::in_frames) fill_blocks();
}

std::optional<links::Lend> GpuSendChannel::lends() {
  if (auto const proof = send_connection->lends(device_.unit()); proof && device_.lies_in_arena()) {
    auto const lent = device_.lend(*proof);
    lends_ = lent.has_value();
    if (lends_) return *lent;
    send_connection->could_not_lend(lent.error());
  }
  send_in_frames();
  return std::nullopt;
}

Status GpuSendChannel::borrowed(links::Way way) {
  if (!lends_ || mode_ != Mode::undecided)
    return Error(links::LinkErrc::bad_frame, lends_ ? "borrow of what was borrowed" : "borrow of what was never lent");
  if (way == links::Way::written) return write_there();
  if (way == links::Way::in_place)
    show_in_place();
  else
    send_in_frames();
  return ok();
}

std::optional<bool> GpuSendChannel::is_borrowed() const {
  return mode_ == Mode::undecided ? std::nullopt : std::optional(mode_ == Mode::in_place);
}

void GpuSendChannel::send_in_frames() {
  auto const* const staging = device_.stage(channel_);
  if (staging == nullptr) return;
  staging_ = *staging;
  block_bytes_ = device_.block_bytes();
  blocks_.resize(staging_.send_blocks);
  free_ = IndexQueue(staging_.send_blocks);
  on_wire_ = IndexQueue(staging_.send_blocks);
  for (std::uint32_t block = 0; block < staging_.send_blocks; ++block) free_.push(block);
  mode_ = Mode::in_frames;
  fill_blocks();
}

void GpuSendChannel::show_in_place() {
  goes_without_blocks(Mode::in_place);
  loan_ = std::make_shared<Loan>(state_.run);
  places_.resize(state_.window);
  for (std::uint32_t m = 0; m < messages_.size(); ++m) list(m, queue_);
}

Status GpuSendChannel::write_there() {
  target_ = device_.borrowed_of(peer());
  if (target_.empty())
    return Error(links::LinkErrc::bad_frame, "borrow that asks to be written to, and nothing of it was borrowed");
  goes_without_blocks(Mode::writes);
  rooms_.resize(messages_.size());
  written_.resize(messages_.size());
  device_.share_with(*this);
  return ok();
}

void GpuSendChannel::goes_without_blocks(Mode mode) {
  mode_ = mode;
  device_.lends(channel_);
  while (!waiting_.empty()) {
    messages_[waiting_.front()].queued = false;
    waiting_.pop();
  }
  for (auto& message : messages_)
    if (std::exchange(message.eager, false)) message.credit = 0;
}

std::uint64_t GpuSendChannel::part_bytes(Message const& message) const {
  auto const quarter = state_.board.total(message.instruction) / parts / state_.element_bytes * state_.element_bytes;
  return std::max(segments_per_part * state_.segment_bytes, quarter);
}

Status GpuSendChannel::granted(links::FrameHeader const& header) {
  if (mode_ == Mode::writes || mode_ == Mode::undecided)
    return Error(links::LinkErrc::bad_frame, "grant of message " + std::to_string(header.message) +
                                                 (mode_ == Mode::writes ? ", which is written where there is room"
                                                                        : " before it was said how it is taken"));
  return SendChannel::granted(header);
}

Status GpuSendChannel::has_room(links::FrameHeader const& header, links::Place const& place) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, "room for message " + std::to_string(header.message) + " from byte " +
                                                 std::to_string(header.offset) + ", " + std::to_string(place.bytes) +
                                                 " bytes at byte " + std::to_string(place.at) +
                                                 " of what was lent: " + why);
  };
  if (mode_ != Mode::writes) return refuse("it is not written there");
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  if (header.epoch != state_.epoch) return refuse("epoch " + std::to_string(header.epoch));
  auto& message = messages_[header.message];
  auto const total = state_.board.total(message.instruction);
  if (header.offset != message.credit) return refuse("expected byte " + std::to_string(message.credit));
  if (place.bytes == 0 || place.bytes > total - message.credit)
    return refuse("the message has " + std::to_string(total) + " bytes");
  if (place.bytes % state_.element_bytes != 0 || place.at % state_.element_bytes != 0)
    return refuse("elements have " + std::to_string(state_.element_bytes) + " bytes");
  if (place.at > target_.size() || place.bytes > target_.size() - place.at)
    return refuse("it has " + std::to_string(target_.size()) + " bytes");
  message.credit += place.bytes;
  rooms_[header.message].push_back(place);
  write(header.message);
  return ok();
}

void GpuSendChannel::write(std::uint32_t m) {
  auto& message = messages_[m];
  for (auto ready = sendable(message); ready != 0; ready = sendable(message)) {
    CHORUS_ASSERT(!rooms_[m].empty(), "credit is room");
    auto const bytes = std::min({ready, rooms_[m].front().bytes, part_bytes(message)});
    device_.write(message.instruction, take_room(m, bytes), {m, bytes, 0, false}, *this);
  }
}

std::byte* GpuSendChannel::take_room(std::uint32_t m, std::uint64_t bytes) {
  auto& room = rooms_[m].front();
  auto* const place = target_.data() + room.at;
  messages_[m].taken += bytes;
  room.at += bytes;
  room.bytes -= bytes;
  if (room.bytes == 0) rooms_[m].pop_front();
  return place;
}

std::optional<DeviceSharer::Share> GpuSendChannel::shares(std::span<std::byte const> result) {
  for (std::uint32_t m = 0; m < messages_.size(); ++m) {
    auto const i = messages_[m].instruction;
    if (rooms_[m].empty() || rooms_[m].front().bytes < result.size()) continue;
    auto const next = device_.next_source(i, result.size());
    if (next.data() != result.data() || next.size() != result.size()) continue;
    device_.was_shared(i, result.size());
    return Share{take_room(m, result.size()), m};
  }
  return std::nullopt;
}

bool GpuSendChannel::next_written(links::OutFrame& frame) {
  if (queue_.empty()) return false;
  auto const m = queue_.front();
  queue_.pop();
  auto& message = messages_[m];
  message.queued = false;
  message.issued = written_[m];
  frame.header.type = links::FrameType::wrote;
  frame.header.message = m;
  frame.header.length = 0;
  frame.header.offset = message.issued;
  frame.payload = {};
  return true;
}

void GpuSendChannel::fill_blocks() {
  while (!waiting_.empty() && !free_.empty()) {
    auto const m = waiting_.front();
    auto& message = messages_[m];
    auto const bytes = std::min(sendable(message), block_bytes_);
    if (bytes == 0) {
      waiting_.pop();
      message.queued = false;
      continue;
    }
    auto const block = free_.front();
    free_.pop();
    blocks_[block] = {m, bytes, 0, 0};
    message.taken += bytes;
    device_.send(message.instruction, staging_.send_at + block * block_bytes_, {m, bytes, block, true}, *this);
  }
}

void GpuSendChannel::device_did(DevicePiece const& piece) {
  if (mode_ == Mode::writes) {
    written_[piece.number] += piece.bytes;
    if (!std::exchange(messages_[piece.number].queued, true)) queue_.push(piece.number);
  } else {
    queue_.push(piece.block);
  }
  if (send_connection != nullptr && has_frame()) send_connection->schedule(*this);
}

bool GpuSendChannel::next_data(links::OutFrame& frame) {
  if (mode_ == Mode::writes) return next_written(frame);
  return mode_ == Mode::in_place ? next_place(frame) : next_block(frame);
}

bool GpuSendChannel::next_block(links::OutFrame& frame) {
  if (queue_.empty()) return false;
  auto const index = queue_.front();
  auto& block = blocks_[index];
  auto& message = messages_[block.message];
  if (block.issued == 0) on_wire_.push(index);
  auto const segments = state_.board.total(message.instruction) / frames_per_message / state_.segment_bytes;
  auto const frame_bytes = state_.segment_bytes * std::clamp<std::uint64_t>(segments, 1, segments_per_frame_max);
  auto const bytes = std::min(block.bytes - block.issued, frame_bytes);
  frame.payload = device_.pinned(staging_.send_at + index * block_bytes_ + block.issued, bytes);
  frame.header.message = block.message;
  frame.header.length = static_cast<std::uint32_t>(bytes);
  frame.header.offset = message.issued;
  message.issued += bytes;
  block.issued += bytes;
  if (block.issued == block.bytes) queue_.pop();
  return true;
}

bool GpuSendChannel::next_place(links::OutFrame& frame) {
  while (!queue_.empty()) {
    auto const m = queue_.front();
    auto& message = messages_[m];
    auto const bytes = std::min(sendable(message), part_bytes(message));
    if (bytes == 0) {
      queue_.pop();
      message.queued = false;
      continue;
    }
    auto& place = places_[shown_++ % places_.size()];
    place = device_.show(message.instruction, bytes);
    frame.header.type = links::FrameType::lies;
    frame.header.message = m;
    frame.header.length = sizeof place;
    frame.header.offset = message.issued;
    frame.payload = std::as_bytes(std::span(&place, 1));
    message.taken = message.issued += place.bytes;
    return true;
  }
  return false;
}

// Frames are sent in the order in which the link got them.
void GpuSendChannel::payload_sent(links::FrameHeader const& header) {
  auto const index = on_wire_.front();
  auto& block = blocks_[index];
  block.sent += header.length;
  if (block.sent != block.bytes) return;
  on_wire_.pop();
  free_.push(index);
  fill_blocks();
}

bool GpuSendChannel::is_read(Message const& message) const {
  return state_.board.done(message.instruction) == message.issued;
}

Status GpuSendChannel::was_read(links::FrameHeader const& header) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, "message " + std::to_string(header.message) + " was read up to byte " +
                                                 std::to_string(header.offset) + ": " + why);
  };
  if (mode_ != Mode::in_place) return refuse("nothing was borrowed");
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  auto const& message = messages_[header.message];
  auto const read = state_.board.done(message.instruction);
  if (header.offset > message.issued) return refuse(std::to_string(message.issued) + " were shown");
  if (header.offset <= read) return refuse(std::to_string(read) + " were read before");
  if (header.offset % state_.element_bytes != 0)
    return refuse("elements have " + std::to_string(state_.element_bytes) + " bytes");
  handed_over(header.message, header.offset - read);
  return ok();
}

void GpuSendChannel::returned() {
  if (mode_ != Mode::in_place) return;
  for (std::uint32_t m = 0; m < messages_.size(); ++m)
    if (!is_read(messages_[m])) handed_over(m, messages_[m].issued - state_.board.done(messages_[m].instruction));
  loan_->returned();
}

std::shared_ptr<Loan> GpuSendChannel::loan() const {
  bool const all_read =
      std::all_of(messages_.begin(), messages_.end(), [this](auto const& message) { return is_read(message); });
  bool const may_be_written = back_ != nullptr && back_->is_written() && back_->waits_for_peer();
  return all_read && !may_be_written ? nullptr : loan_;
}

}  // namespace chorus::engine
