#include "worker/engine/gpu/gpu_receive_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/transport/receive_connection.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {
namespace {

// Every room costs a note, and a link stores only a limited number for a peer that does not read.
constexpr std::size_t written_messages_max = 32;
constexpr std::uint64_t rooms_per_message_max = 64;

}  // namespace

GpuReceiveChannel::GpuReceiveChannel(RunState& state, DeviceWork& device, std::uint32_t channel, plan::Rank peer,
                                     std::vector<std::uint32_t> instructions, std::uint64_t digest)
    : ReceiveChannel(state, peer, std::move(instructions), digest),
      device_(device),
      channel_(channel),
      progress_(messages_.size()) {}

void GpuReceiveChannel::opened(Borrowed lent) {
  ReceiveChannel::opened(lent);
  if (lent != nullptr)
    read_in_place(std::move(lent));
  else
    receive_in_frames();
  for (std::uint32_t m = 0; m < messages_.size(); ++m) wake(m);
}

void GpuReceiveChannel::receive_in_frames() {
  auto const* const staging = device_.stage(channel_);
  if (staging == nullptr) return takes_no_data("there is no room for it");
  mode_ = Mode::in_frames;
  staging_ = *staging;
  block_bytes_ = device_.block_bytes();
  for (auto block = staging_.receive_blocks; block-- != 0;) free_blocks_.push_back(block);
  for (std::uint32_t m = 0; m < messages_.size(); ++m) dry_messages_ += is_dry(m);
  CHORUS_ASSERT(dry_messages_ <= staging_.receive_blocks, "every message can have a block");
}

void GpuReceiveChannel::read_in_place(Borrowed lent) {
  mode_ = Mode::in_place;
  lent_ = lent->bytes();
  device_.borrows(channel_, peer(), std::move(lent));
  takes_no_data("it is read where it lies");
  reads_ = IndexQueue(messages_.size());
  takes_nothing_early();
}

void GpuReceiveChannel::takes_nothing_early() {
  for (auto& message : messages_)
    if (std::exchange(message.eager, false)) message.granted = 0;
}

bool GpuReceiveChannel::may_be_written() const {
  return messages_.size() <= written_messages_max &&
         std::ranges::all_of(messages_, [this](auto const& m) { return device_.receives_as_it_is(m.instruction); });
}

void GpuReceiveChannel::opened_to_writes() {
  ReceiveChannel::opened(nullptr);
  mode_ = Mode::written;
  device_.is_written(channel_);
  takes_no_data("it is written where it is to lie");
  takes_nothing_early();
  for (std::uint32_t m = 0; m < messages_.size(); ++m) wake(m);
}

void GpuReceiveChannel::make_room(std::uint32_t m) {
  auto& message = messages_[m];
  auto const ready = state_.board.ready(message.instruction);
  auto const total = state_.board.total(message.instruction);
  if (ready < total && ready - message.granted < total / rooms_per_message_max) return;
  while (receive_connection != nullptr && message.granted < ready) {
    auto const place = device_.room(message.instruction, ready - message.granted);
    links::FrameHeader header;
    header.run = state_.run;
    header.epoch = state_.epoch;
    header.message = m;
    header.offset = message.granted;
    receive_connection->send_room(header, place);
    message.granted += place.bytes;
  }
}

Status GpuReceiveChannel::wrote(links::FrameHeader const& header) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, "message " + std::to_string(header.message) + " was written up to byte " +
                                                 std::to_string(header.offset) + ": " + why);
  };
  if (mode_ != Mode::written) return refuse("there was no room for it");
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  if (header.epoch != state_.epoch) return refuse("epoch " + std::to_string(header.epoch));
  auto& message = messages_[header.message];
  if (header.offset > message.granted) return refuse("there was room up to byte " + std::to_string(message.granted));
  if (header.offset <= message.arrived) return refuse(std::to_string(message.arrived) + " were written before");
  if (header.offset % state_.element_bytes != 0)
    return refuse("elements have " + std::to_string(state_.element_bytes) + " bytes");
  auto const bytes = header.offset - message.arrived;
  message.arrived = header.offset;
  count(bytes, message.arrived == state_.board.total(message.instruction));
  state_.board.advance(message.instruction, bytes);
  return ok();
}

std::uint64_t GpuReceiveChannel::address(std::uint32_t block) const {
  return staging_.receive_at + block * block_bytes_;
}

bool GpuReceiveChannel::is_dry(std::uint32_t m) const {
  return !messages_[m].eager && progress_[m].held_blocks == 0 &&
         progress_[m].granted_blocks * block_bytes_ < state_.board.total(messages_[m].instruction);
}

// One block is reserved for every message that has none: which of them the peer can send next is unknown here.
bool GpuReceiveChannel::may_hold_one_more(std::uint32_t m) const {
  auto const kept = dry_messages_ - (is_dry(m) ? 1 : 0);
  return held_blocks_ + kept < staging_.receive_blocks;
}

void GpuReceiveChannel::extend(std::uint32_t m) {
  auto& way = progress_[m];
  auto const ready = state_.board.ready(messages_[m].instruction);
  while (way.granted_blocks * block_bytes_ < ready && may_hold_one_more(m)) {
    dry_messages_ -= is_dry(m);
    ++way.granted_blocks;
    ++way.held_blocks;
    ++held_blocks_;
  }
  grant(m, std::min(ready, way.granted_blocks * block_bytes_));
}

void GpuReceiveChannel::wake(std::uint32_t m) {
  if (mode_ == Mode::undecided) return;
  if (mode_ == Mode::in_place) return grant(m, state_.board.ready(messages_[m].instruction));
  if (mode_ == Mode::written) return make_room(m);
  if (messages_[m].eager) return queue_early(m);
  extend(m);
}

Status GpuReceiveChannel::lies(links::FrameHeader const& header, links::Place const& place) {
  auto const refuse = [&](std::string const& why) {
    return Error(links::LinkErrc::bad_frame, std::to_string(place.bytes) + " bytes of message " +
                                                 std::to_string(header.message) + " at byte " +
                                                 std::to_string(header.offset) + ", said to lie at byte " +
                                                 std::to_string(place.at) + " of what was lent: " + why);
  };
  if (mode_ != Mode::in_place) return refuse("nothing was borrowed");
  if (header.message >= messages_.size())
    return refuse("the run has " + std::to_string(messages_.size()) + " messages in this direction");
  if (header.epoch != state_.epoch) return refuse("epoch " + std::to_string(header.epoch));
  auto& message = messages_[header.message];
  if (header.offset != message.arrived) return refuse("expected byte " + std::to_string(message.arrived));
  if (place.bytes == 0 || place.bytes > message.granted - message.arrived)
    return refuse("granted up to byte " + std::to_string(message.granted));
  if (place.bytes % state_.element_bytes != 0 || place.at % state_.element_bytes != 0)
    return refuse("elements have " + std::to_string(state_.element_bytes) + " bytes");
  if (place.at > lent_.size() || place.bytes > lent_.size() - place.at)
    return refuse("it has " + std::to_string(lent_.size()) + " bytes");
  message.arrived += place.bytes;
  device_.read(message.instruction, lent_.data() + place.at, {header.message, place.bytes, none, false}, *this);
  return ok();
}

void GpuReceiveChannel::did_read(DevicePiece const& piece) {
  auto& progress = progress_[piece.number];
  auto const i = messages_[piece.number].instruction;
  progress.read += piece.bytes;
  count(piece.bytes, progress.read == state_.board.total(i));
  state_.board.advance(i, piece.bytes);
  if (std::exchange(progress.is_told, false)) reads_.push(piece.number);
  has_read_ = true;
  if (receive_connection != nullptr) receive_connection->schedule(*this);
}

bool GpuReceiveChannel::next_read(links::FrameHeader& header) {
  auto const m = reads_.front();
  reads_.pop();
  has_read_ = !reads_.empty();
  progress_[m].is_told = true;
  header = {};
  header.type = links::FrameType::read;
  header.run = state_.run;
  header.epoch = state_.epoch;
  header.message = m;
  header.offset = progress_[m].read;
  return true;
}

std::span<std::byte> GpuReceiveChannel::space() {
  auto const& message = messages_[message_];
  auto const at = message.arrived + (frame_bytes_ - frame_left_);
  if (message.eager) return device_.pinned(staging_.eager_at + message.stage_at + at, frame_left_);
  auto& way = progress_[message_];
  if (way.block == none) {
    way.block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  auto const in_block = at % block_bytes_;
  return device_.pinned(address(way.block) + in_block, std::min<std::uint64_t>(block_bytes_ - in_block, frame_left_));
}

void GpuReceiveChannel::put(std::size_t bytes) {
  auto const& message = messages_[message_];
  frame_left_ -= bytes;
  if (message.eager) return;
  auto const at = message.arrived + (frame_bytes_ - frame_left_);
  bool const ends_block = at % block_bytes_ == 0 || at == state_.board.total(message.instruction);
  if (ends_block || frame_left_ == 0) queue_until(message_, at, ends_block);
}

void GpuReceiveChannel::queue_until(std::uint32_t m, std::uint64_t end, bool frees_block) {
  auto& way = progress_[m];
  auto const begin = std::exchange(way.queued, end);
  DevicePiece const piece{m, end - begin, way.block, frees_block};
  device_.receive(messages_[m].instruction, address(way.block) + begin % block_bytes_, piece, *this);
  if (frees_block) way.block = none;
}

void GpuReceiveChannel::queue_early(std::uint32_t m) {
  auto const& message = messages_[m];
  auto& way = progress_[m];
  auto const until = std::min(state_.board.ready(message.instruction), message.arrived);
  if (until <= way.queued) return;
  auto const begin = std::exchange(way.queued, until);
  device_.receive(message.instruction, staging_.eager_at + message.stage_at + begin, {m, until - begin, 0, false},
                  *this);
}

void GpuReceiveChannel::arrived_here() {
  arrived();
  if (messages_[message_].eager) queue_early(message_);
}

void GpuReceiveChannel::filled(std::size_t bytes) {
  put(bytes);
  if (frame_left_ == 0) arrived_here();
}

void GpuReceiveChannel::take(std::span<std::byte const> payload) {
  while (!payload.empty()) {
    auto const to = space();
    auto const bytes = std::min(to.size(), payload.size());
    std::memcpy(to.data(), payload.data(), bytes);
    put(bytes);
    payload = payload.subspan(bytes);
  }
}

void GpuReceiveChannel::took() { arrived_here(); }

// A withdrawn payload is on the device already and may be garbage, so nothing may depend on it.
void GpuReceiveChannel::device_did(DevicePiece const& piece) {
  if (mode_ == Mode::in_place) return did_read(piece);
  if (is_withdrawn()) return;
  state_.board.advance(messages_[piece.number].instruction, piece.bytes);
  if (!piece.frees_block) return;
  free_blocks_.push_back(piece.block);
  --progress_[piece.number].held_blocks;
  --held_blocks_;
  dry_messages_ += is_dry(piece.number);
  for (std::uint32_t m = 0; m < messages_.size(); ++m)
    if (!messages_[m].eager) extend(m);
  if (receive_connection != nullptr && has_word()) receive_connection->schedule(*this);
}

}  // namespace chorus::engine
