// The receiving end's part with runs that this rank has not started yet.
#include <algorithm>
#include <cstring>

#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/receive_connection.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;

namespace {

// Limit for the data of an early run: twice its budget covers headers and padding (EagerBudget charges for every chunk,
// and a frame that is not the last of its chunk has at least 64 bytes).
std::size_t early_bytes_max(std::uint64_t eager_bytes) { return 2 * eager_bytes + 4096; }

std::size_t padded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

Status ReceiveConnection::data_arrives_early(Early& early, FrameHeader const& header) {
  auto const at = early.frames.size();
  if (header.epoch != early.epoch) return bad("data of epoch " + std::to_string(header.epoch));
  if (at + sizeof header + padded(header.length) > early_bytes_max(owner_.options().eager_bytes))
    return bad("more than " + std::to_string(owner_.options().eager_bytes) + " ungranted bytes of run " +
               std::to_string(header.run));
  if (auto const most = early_data_max(); early_data() + sizeof header + padded(header.length) > most) {
    sink_ = Sink::nowhere;
    auto const token = early.open.token;
    bool const is_message = early.envelope.has_value();
    forget_early(find_early(header.run));
    refuse_early(header.run, header.epoch, token, is_message,
                 "more than " + std::to_string(most) + " bytes of " + peer().worker +
                     " wait for their runs' calls here: make them in the same order, or fewer of them at a time");
    return ok();
  }
  early.frames.resize(at + sizeof header + padded(header.length));
  std::memcpy(early.frames.data() + at, &header, sizeof header);
  sink_ = Sink::early;
  arriving_early_ = &early;
  early_at_ = at;
  return ok();
}

std::uint64_t ReceiveConnection::early_data() const {
  std::uint64_t bytes = 0;
  for (auto const& early : early_) bytes += early->frames.size();
  return bytes;
}

std::uint64_t ReceiveConnection::early_data_max() const {
  auto const& options = owner_.options();
  return std::max<std::uint64_t>(options.early_bytes, early_bytes_max(options.eager_bytes));
}

// An honest peer may be far ahead of this rank's calls: only this run fails.
void ReceiveConnection::refuse_early(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, bool is_message,
                                     std::string why) {
  Failure const failure{EngineErrc::aborted, std::move(why), {}, {}};
  refuse(run, epoch, token, failure);
  if (owner_.find_ended(run) == nullptr) owner_.end_unstarted(run, epoch, to_failure_notice(failure, token), failure);
  if (is_message) owner_.message_failed(token, epoch, failure);
}

Status ReceiveConnection::keep_early(links::DecodedOpen const& decoded) {
  if (auto const most = owner_.options().early_runs; early_.size() >= most) {
    refuse_early(control_header().run, control_header().epoch, decoded.open.token, decoded.envelope.has_value(),
                 "more than " + std::to_string(most) + " runs of " + peer().worker +
                     " wait for their calls here: make them in the same order, or fewer of them at a time");
    return ok();
  }
  auto early = std::make_unique<Early>();
  early->run = control_header().run;
  early->epoch = control_header().epoch;
  early->open = decoded.open;
  early->description = decoded.description();
  early->lend = decoded.lend;
  early->envelope = decoded.envelope;
  early_.push_back(std::move(early));
  if (decoded.envelope) report_message(control_header().run);
  return ok();
}

void ReceiveConnection::report_message(std::uint64_t run) {
  auto const index = find_early(run);
  if (index == early_.size() || !early_[index]->envelope) return;
  // Copies: the message may be received at once.
  auto const open = early_[index]->open;
  auto const envelope = *early_[index]->envelope;
  owner_.message_arrived(peer(), open, early_[index]->epoch, envelope, run);
}

void ReceiveConnection::refuse_message(std::uint64_t run, Failure const& why) {
  auto const index = find_early(run);
  if (index == early_.size() || is_closed()) return;
  refuse(run, early_[index]->epoch, early_[index]->open.token, why);
  forget_early(index);
}

std::vector<std::uint64_t> ReceiveConnection::early_messages(std::uint64_t token, std::uint32_t epoch) const {
  std::vector<std::uint64_t> runs;
  for (auto const& early : early_)
    if (early->envelope && early->open.token == token && early->epoch == epoch) runs.push_back(early->run);
  return runs;
}

void ReceiveConnection::start(RunOnLinks& run) {
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
Status ReceiveConnection::replay(Early& early, ReceiveChannel& channel) {
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

Status ReceiveConnection::deliver(ReceiveChannel& channel, std::span<std::byte const> frame) {
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
  owner_.touch(channel.run());
  return ok();
}

Status ReceiveConnection::early_frame_ended() {
  auto& early = *arriving_early_;
  sink_ = Sink::nowhere;
  if (early.channel == nullptr) return ok();
  auto const delivered = deliver(*early.channel, std::span(early.frames).subspan(early_at_));
  if (auto const index = find_early(early.run); index != early_.size()) forget_early(index);
  return delivered;
}

}  // namespace chorus::engine
