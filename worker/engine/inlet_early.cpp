// The receiving end's part with runs that this rank has not started yet.
#include <algorithm>
#include <cstring>

#include "worker/engine/engine.hpp"
#include "worker/engine/inlet.hpp"
#include "worker/links/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;

namespace {

// What an early run may keep: twice its budget covers headers and padding (EagerBudget charges for every chunk, and a
// frame that is not a chunk's last has at least 64 bytes).
std::size_t early_bytes_max(std::uint64_t eager_bytes) { return 2 * eager_bytes + 4096; }

std::size_t padded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

Status Inlet::data_arrives_early(Early& early, FrameHeader const& header) {
  auto const at = early.frames.size();
  if (header.epoch != early.epoch) return bad("data of epoch " + std::to_string(header.epoch));
  if (at + sizeof header + padded(header.length) > early_bytes_max(engine_.options().eager_bytes))
    return bad("more than " + std::to_string(engine_.options().eager_bytes) + " ungranted bytes of run " +
               std::to_string(header.run));
  early.frames.resize(at + sizeof header + padded(header.length));
  std::memcpy(early.frames.data() + at, &header, sizeof header);
  sink_ = Sink::early;
  arriving_early_ = &early;
  early_at_ = at;
  return ok();
}

Status Inlet::keep_early(links::DecodedOpen const& decoded) {
  if (early_.size() >= engine_.options().early_runs)
    return bad("more than " + std::to_string(engine_.options().early_runs) + " runs wait to be started here");
  auto early = std::make_unique<Early>();
  early->run = control_header().run;
  early->epoch = control_header().epoch;
  early->open = decoded.open;
  early->description = decoded.description();
  early->lend = decoded.lend;
  early_.push_back(std::move(early));
  return ok();
}

void Inlet::start(Run& run) {
  auto const index = find_early(run.spec().run);
  if (index == early_.size() || is_closed()) return;
  auto& early = *early_[index];
  links::DecodedOpen const decoded{early.open, std::as_bytes(std::span(early.description)), early.lend};
  auto answered = answer_open(run, decoded, early.epoch);
  auto* const channel = find(run.spec().run);
  if (answered.has_value() && channel != nullptr) {
    answered = replay(early, *channel);
    if (answered.has_value() && sink_ == Sink::early && arriving_early_ == &early) {
      early.channel = channel;
      return;
    }
  }
  if (auto const left = find_early(run.spec().run); left != early_.size()) forget_early(left);
  if (answered.has_error()) fail(answered.error());
}

// Delivers the frames that are complete.
Status Inlet::replay(Early& early, ReceiveChannel& channel) {
  std::span<std::byte const> frames = early.frames;
  if (sink_ == Sink::early && arriving_early_ == &early) frames = frames.first(early_at_);
  while (!frames.empty()) {
    FrameHeader header;
    std::memcpy(&header, frames.data(), sizeof header);
    auto const size = sizeof header + padded(header.length);
    if (auto delivered = deliver(channel, frames.first(size)); delivered.has_error()) return delivered;
    frames = frames.subspan(size);
  }
  return ok();
}

Status Inlet::deliver(ReceiveChannel& channel, std::span<std::byte const> frame) {
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  if (!replay_scratch_) replay_scratch_ = std::make_unique_for_overwrite<Memory>();
  if (auto begun = channel.begin_frame(header, *replay_scratch_); begun.has_error()) return bad(begun.error().detail);
  auto payload = frame.subspan(sizeof header, header.length);
  while (!payload.empty()) {
    auto const space = channel.space();
    auto const bytes = std::min(space.size(), payload.size());
    std::memcpy(space.data(), payload.data(), bytes);
    channel.filled(bytes);
    payload = payload.subspan(bytes);
  }
  engine_.touch(channel.run());
  return ok();
}

Status Inlet::early_frame_ended() {
  auto& early = *arriving_early_;
  sink_ = Sink::nowhere;
  if (early.channel == nullptr) return ok();
  auto const delivered = deliver(*early.channel, std::span(early.frames).subspan(early_at_));
  if (auto const index = find_early(early.run); index != early_.size()) forget_early(index);
  return delivered;
}

}  // namespace chorus::engine
