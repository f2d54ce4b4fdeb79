#include "worker/engine/transport/early_runs.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/transport/connection_owner.hpp"

namespace chorus::engine {

using links::FrameHeader;

namespace {

// Limit for the data of an early run: twice its budget covers headers and padding (EagerBudget charges for every chunk,
// and a frame that is not the last of its chunk has at least 64 bytes).
std::size_t early_bytes_max(std::uint64_t eager_bytes) { return 2 * eager_bytes + 4096; }

std::size_t padded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

bool is_of(EarlyRun const& early, std::uint64_t token, std::uint32_t epoch) {
  return early.open.token == token && early.epoch == epoch;
}

FrameHeader header_of(std::span<std::byte const> frame) {
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  return header;
}

}  // namespace

EarlyRuns::EarlyRuns(ConnectionOwner& owner, Connection& connection, Refusals& refusals)
    : owner_(owner), connection_(connection), refusals_(refusals) {}

EarlyRun* EarlyRuns::find(std::uint64_t run) const {
  auto const found = std::ranges::find(runs_, run, [](auto const& each) { return each->run; });
  return found != runs_.end() ? found->get() : nullptr;
}

void EarlyRuns::forget(std::uint64_t run) {
  if (arriving_ != nullptr && arriving_->run == run) arriving_ = nullptr;
  std::erase_if(runs_, [run](auto const& each) { return each->run == run; });
}

void EarlyRuns::retire(Retired const& epoch) {
  std::vector<std::uint64_t> runs;
  for (auto const& early : runs_)
    if (is_of(*early, epoch.token, epoch.epoch)) runs.push_back(early->run);
  for (auto const run : runs) {
    refusals_.refuse(run, epoch.epoch, epoch.token, epoch.told_to(connection_.peer().worker));
    forget(run);
  }
}

std::vector<std::unique_ptr<EarlyRun>> EarlyRuns::remove_all() {
  arriving_ = nullptr;
  return std::exchange(runs_, {});
}

void EarlyRuns::report_lost(std::vector<std::unique_ptr<EarlyRun>> const& removed, Error const& why) {
  for (auto const& early : removed)
    if (early->envelope)
      owner_.message_failed(early->open.token, early->epoch,
                            {code_of(why),
                             "lost rank " + std::to_string(early->open.sender_rank) + " (" + connection_.peer().worker +
                                 ") before its message was received: " + why.detail,
                             {early->open.sender_rank},
                             {}});
}

void EarlyRuns::keep(FrameHeader const& header, links::DecodedOpen const& open) {
  if (auto const most = owner_.options().early_runs; runs_.size() >= most)
    return refuse(header.run, header.epoch, open.open.token, open.envelope.has_value(),
                  "more than " + std::to_string(most) + " runs of " + connection_.peer().worker +
                      " wait for their calls here: make them in the same order, or fewer of them at a time");
  auto early = std::make_unique<EarlyRun>();
  early->run = header.run;
  early->epoch = header.epoch;
  early->open = open.open;
  early->description = open.description();
  early->lend = open.lend;
  early->envelope = open.envelope;
  runs_.push_back(std::move(early));
  report_message(header.run);
}

std::vector<std::uint64_t> EarlyRuns::messages(std::uint64_t token, std::uint32_t epoch) const {
  std::vector<std::uint64_t> runs;
  for (auto const& early : runs_)
    if (early->envelope && is_of(*early, token, epoch)) runs.push_back(early->run);
  return runs;
}

void EarlyRuns::report_message(std::uint64_t run) {
  auto const* const early = find(run);
  if (early == nullptr || !early->envelope) return;
  // Copies: the message may be received at once.
  auto const open = early->open;
  auto const envelope = *early->envelope;
  owner_.message_arrived(connection_.peer(), open, early->epoch, envelope, run);
}

void EarlyRuns::refuse_message(std::uint64_t run, Failure const& why) {
  auto const* const early = find(run);
  if (early == nullptr || connection_.is_closed()) return;
  refusals_.refuse(run, early->epoch, early->open.token, why);
  forget(run);
}

Status EarlyRuns::begin_frame(EarlyRun& early, FrameHeader const& header) {
  auto const at = early.frames.size();
  auto const size = sizeof header + padded(header.length);
  if (header.epoch != early.epoch) return refusals_.bad_frame("data of epoch " + std::to_string(header.epoch));
  if (at + size > early_bytes_max(owner_.options().eager_bytes))
    return refusals_.bad_frame("more than " + std::to_string(owner_.options().eager_bytes) +
                               " ungranted bytes of run " + std::to_string(header.run));
  if (auto const most = data_max(); data() + size > most) {
    auto const token = early.open.token;
    bool const is_message = early.envelope.has_value();
    forget(header.run);
    refuse(header.run, header.epoch, token, is_message,
           "more than " + std::to_string(most) + " bytes of " + connection_.peer().worker +
               " wait for their runs' calls here: make them in the same order, or fewer of them at a time");
    return ok();
  }
  early.frames.resize(at + size);
  std::memcpy(early.frames.data() + at, &header, sizeof header);
  arriving_ = &early;
  arriving_at_ = at;
  return ok();
}

std::span<std::byte> EarlyRuns::space(std::size_t left) {
  auto const frame = std::span(arriving_->frames).subspan(arriving_at_);
  return frame.subspan(sizeof(FrameHeader) + header_of(frame).length - left, left);
}

Status EarlyRuns::frame_ended() {
  auto& early = *std::exchange(arriving_, nullptr);
  if (early.channel == nullptr) return ok();
  auto const delivered = deliver_frame(*early.channel, std::span(early.frames).subspan(arriving_at_));
  forget(early.run);
  return delivered;
}

void EarlyRuns::frame_withdrawn() { std::exchange(arriving_, nullptr)->frames.resize(arriving_at_); }

Status EarlyRuns::deliver(EarlyRun& early, ReceiveChannel& channel) {
  std::span<std::byte const> frames = early.frames;
  bool const is_arriving = arriving_ == &early;
  if (is_arriving) frames = frames.first(arriving_at_);
  auto delivered = ok();
  while (!frames.empty() && delivered.has_value()) {
    auto const size = sizeof(FrameHeader) + padded(header_of(frames).length);
    delivered = deliver_frame(channel, frames.first(size));
    frames = frames.subspan(size);
  }
  if (is_arriving && delivered.has_value())
    early.channel = &channel;
  else
    forget(early.run);
  return delivered;
}

Status EarlyRuns::deliver_frame(ReceiveChannel& channel, std::span<std::byte const> frame) {
  auto const header = header_of(frame);
  if (!scratch_) scratch_ = std::make_unique_for_overwrite<Memory>();
  if (auto begun = channel.begin_frame(header, *scratch_); begun.has_error())
    return refusals_.bad_frame(begun.error().detail);
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

std::uint64_t EarlyRuns::data() const {
  std::uint64_t bytes = 0;
  for (auto const& early : runs_) bytes += early->frames.size();
  return bytes;
}

std::uint64_t EarlyRuns::data_max() const {
  auto const& options = owner_.options();
  return std::max<std::uint64_t>(options.early_bytes, early_bytes_max(options.eager_bytes));
}

// An honest peer may be far ahead of this rank's calls: only this run fails.
void EarlyRuns::refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, bool is_message, std::string why) {
  Failure const failure{EngineErrc::aborted, std::move(why), {}, {}};
  refusals_.refuse(run, epoch, token, failure);
  if (owner_.find_ended(run) == nullptr) owner_.end_unstarted(run, epoch, to_failure_notice(failure, token), failure);
  if (is_message) owner_.message_failed(token, epoch, failure);
}

}  // namespace chorus::engine
