#include "worker/engine/transport/receive_connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/transport/connection_owner.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::FrameType;

ReceiveConnection::ReceiveConnection(ConnectionOwner& owner, Identity peer, std::uint64_t number)
    : Connection(owner, std::move(peer)), number_(number), scratch_(std::make_unique_for_overwrite<Memory>()) {}

ReceiveChannel* ReceiveConnection::find(std::uint64_t run) {
  for (auto* channel : channels_)
    if (channel->run() == run) return channel;
  return nullptr;
}

void ReceiveConnection::schedule(ReceiveChannel& channel) {
  scheduled_.push(channel);
  touch();
}

void ReceiveConnection::remove(ReceiveChannel& channel) {
  channel.receive_connection = nullptr;
  if (!channel.finished()) refusals_.drop(channel.run());
  std::erase(channels_, &channel);
  lent_opens_.forget(channel);
  scheduled_.remove(channel);
  if (sink_ == Sink::channel && channel_ == &channel) sink_ = Sink::nowhere;
  early_runs_.forget(channel.run());
}

bool ReceiveConnection::next_frame(links::OutFrame& frame) {
  if (next_note(frame)) return true;
  if (is_closing()) return false;
  while (!scheduled_.empty()) {
    auto& channel = scheduled_.pop();
    if (!channel.next_word(frame.header)) continue;
    if (channel.has_word()) scheduled_.push(channel);
    frame.payload = {};
    return true;
  }
  return false;
}

void ReceiveConnection::frame_sent(FrameHeader const& header) {
  if (header.type != FrameType::grant && header.type != FrameType::read) note_sent();
}

void ReceiveConnection::refuse_link(EngineErrc code, std::string why) {
  if (is_closed()) return;
  refusals_.refuse(0, 0, 0, {code, why, {}, {}});
  fail(Error(code, std::move(why)));
}

void ReceiveConnection::forget(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice) {
  auto const* const early = early_runs_.find(run);
  if (early == nullptr || early->open.token != failure_notice.token) return;
  send_failure_notice(FrameType::abort, run, epoch, failure_notice);
  early_runs_.forget(run);
  refusals_.drop(run);
}

void ReceiveConnection::forget(std::uint64_t run, Failure const& why) {
  if (auto const* const early = early_runs_.find(run))
    forget(run, early->epoch, to_failure_notice(why, early->open.token));
}

void ReceiveConnection::retire(Retired const& epoch) {
  if (is_closed()) return;
  early_runs_.retire(epoch);
  early_messages_.retire(epoch);
}

void ReceiveConnection::start(RunOnLinks& run) {
  auto const id = run.spec().run;
  auto* const early = early_runs_.find(id);
  if (early == nullptr || is_closed()) return;
  links::DecodedOpen const decoded{early->open, std::as_bytes(std::span(early->description)), early->lend};
  auto answered = answer_open(run, decoded, early->epoch);
  auto* const channel = find(id);
  if (answered.has_value() && channel != nullptr)
    answered = early_runs_.deliver(*early, *channel);
  else
    early_runs_.forget(id);
  if (answered.has_error()) fail(answered.error());
}

std::optional<std::uint64_t> ReceiveConnection::take(links::MessageFrame const& awaited, std::span<std::byte> to,
                                                     unsigned polls) {
  links::MessageFrame message;
  if (link() == nullptr || is_closing() || link()->look_at_message(message, polls) != links::Link::Next::message)
    return std::nullopt;
  if (!are_alike(message.header, awaited.header) || message.head != awaited.head || message.content.size() > to.size())
    return std::nullopt;
  std::copy(message.content.begin(), message.content.end(), to.begin());
  if (!link()->pass_message(message)) return std::nullopt;
  frame_moved();
  counters_.received(message.header.length);
  return message.content.size();
}

bool ReceiveConnection::awaits_coalesced_frame(FrameHeader const& open) const {
  return !is_closing() && owner_.awaits_coalesced_frame(open.run);
}

bool ReceiveConnection::coalesced_frame_arrives(links::CoalescedFrame const& coalesced_frame) {
  if (!owner_.exchange_takes(coalesced_frame, peer(), *scratch_)) return false;
  frame_moved();
  frame_moved();
  counters_.received(coalesced_frame.data.length);
  return true;
}

Status ReceiveConnection::frame_arrives(FrameHeader const& header) {
  if (auto checked = links::check(header); checked.has_error()) return refusals_.bad_frame(checked.error().detail);
  if (owner_.has_device_runs()) owner_.look_for_standstill();
  left_ = header.length;
  timing_ = false;
  taken_ = false;
  frame_moved();
  switch (header.type) {
    case FrameType::wrote:
      if (!may_lend()) return refusals_.bad_frame("wrote frame on a link that lends no memory of a GPU");
      return take_by_channel(header, [&](ReceiveChannel& channel) { return channel.wrote(header); });
    case FrameType::open:
    case FrameType::lies:
      if ((header.flags == links::lends_flag || header.type == FrameType::lies) && !may_lend())
        return refusals_.bad_frame(std::string(name(header.type)) +
                                   " frame with memory of a GPU on a link that lends none");
      [[fallthrough]];
    case FrameType::abort:
    case FrameType::ask:
    case FrameType::tell:
      sink_ = Sink::control;
      collect(header);
      return ok();
    case FrameType::grant:
    case FrameType::refuse:
    case FrameType::borrow:
    case FrameType::read:
    case FrameType::returned:
    case FrameType::room:
      return refusals_.bad_frame(std::string(name(header.type)) + " frame from the sending side");
    case FrameType::message:
      sink_ = Sink::message;
      message_ = header;
      return ok();
    case FrameType::data:
      break;
  }
  return data_arrives(header);
}

// The corrupt frame may have been the open of any run that waits for one.
void ReceiveConnection::frame_is_corrupt(Error const& why) {
  refusals_.refuse(0, 0, 0, {EngineErrc::corrupt_frame, why.detail, {}, {}});
  owner_.fail_awaiting(peer(), why);
}

Status ReceiveConnection::data_arrives(FrameHeader const& header) {
  if (auto* const channel = find(header.run)) {
    if (auto begun = channel->begin_frame(header, *scratch_); begun.has_error())
      return refusals_.bad_frame(begun.error().detail);
    sink_ = Sink::channel;
    channel_ = channel;
    return ok();
  }
  if (auto* const early = early_runs_.find(header.run)) {
    sink_ = Sink::early;
    return early_runs_.begin_frame(*early, header);
  }
  sink_ = Sink::nowhere;
  if (is_over(header.run)) return ok();
  return refusals_.bad_frame("data of run " + std::to_string(header.run) + ", which was never opened on this link");
}

bool ReceiveConnection::is_over(std::uint64_t run) const {
  return owner_.find_ended(run) != nullptr || refusals_.drops(run);
}

bool ReceiveConnection::is_dropped() const {
  return sink_ == Sink::nowhere || (sink_ == Sink::early && !early_runs_.is_arriving());
}

std::span<std::byte> ReceiveConnection::payload_space() {
  if (is_dropped()) return *scratch_;
  switch (sink_) {
    case Sink::control:
      return collecting_space();
    case Sink::channel:
      return channel_->space();
    case Sink::early:
      return early_runs_.space(left_);
    case Sink::message:
      return std::span(*scratch_).subspan(message_.length - left_, left_);
    case Sink::nowhere:
      break;
  }
  return *scratch_;
}

Status ReceiveConnection::payload_arrived(std::size_t bytes) {
  left_ -= bytes;
  if (sink_ == Sink::control) {
    if (!collected(bytes)) return ok();
    if (control_header().type == FrameType::open) return open_arrived();
    if (auto const checked = check_epoch(control_header()); checked.has_error())
      return refusals_.bad_frame(checked.error().detail);
    if (control_header().type == FrameType::lies) return place_arrived();
    if (control_header().type != FrameType::abort) {
      auto const understood = inquiry_arrived();
      return understood.has_error() ? refusals_.bad_frame(understood.error().detail) : understood;
    }
    auto const failure_notice = links::decode_failure_notice(control_payload());
    if (failure_notice.has_error()) return refusals_.bad_frame(failure_notice.error().detail);
    abort_arrived(*failure_notice);
    return ok();
  }
  counters_.received(bytes);
  if (left_ != 0 && !timing_) {
    timing_ = true;
    since_ = owner_.surroundings().now();
  } else if (left_ == 0 && timing_) {
    counters_.was_receiving(owner_.surroundings().now() - since_);
  }
  if (sink_ == Sink::channel) {
    if (taken_)
      channel_->took();
    else
      channel_->filled(bytes);
    if (left_ == 0) owner_.touch(channel_->run());
  }
  if (left_ != 0 || is_dropped()) return ok();
  if (sink_ == Sink::early) return early_runs_.frame_ended();
  if (sink_ == Sink::message) early_messages_.arrived(message_, std::span(*scratch_).first(message_.length));
  return ok();
}

void ReceiveConnection::payload_at(std::span<std::byte const> payload) {
  taken_ = true;
  if (is_dropped()) return;
  if (sink_ != Sink::channel) {
    auto const space = payload_space();
    std::memcpy(space.data(), payload.data(), payload.size());
    return;
  }
  timing_ = payload.size() >= timed_bytes;
  if (timing_) since_ = owner_.surroundings().now();
  channel_->take(payload);
}

void ReceiveConnection::payload_withdrawn() {
  if (sink_ == Sink::channel) channel_->withdrawn();
  if (sink_ == Sink::early && early_runs_.is_arriving()) early_runs_.frame_withdrawn();
  sink_ = Sink::nowhere;
}

Status ReceiveConnection::open_arrived() {
  auto const& header = control_header();
  auto decoded = links::decode_open(control_payload(), header.flags);
  if (decoded.has_error()) return refusals_.bad_frame(decoded.error().detail);
  auto const& open = decoded->open;
  auto const refused = [&](Failure const& why) {
    refusals_.refuse(header.run, header.epoch, open.token, why);
    return ok();
  };
  if (header.run == 0) return refusals_.bad_frame("open frame for run 0");
  if (find(header.run) != nullptr || early_runs_.find(header.run) != nullptr)
    return refusals_.bad_frame("run " + std::to_string(header.run) + " was opened twice");
  if (open.receiver_incarnation != owner_.options().incarnation)
    return refused({EngineErrc::epoch_fenced,
                    "this is another incarnation of " + owner_.options().worker,
                    {open.receiver_rank},
                    {}});
  if (auto* const run = owner_.find_run(header.run)) return answer_open(*run, *decoded, header.epoch);
  auto const* const ended = owner_.find_ended(header.run);
  if (ended != nullptr && ended->was_started && !ended->has(open.token))
    return refused({EngineErrc::forbidden,
                    "run " + std::to_string(header.run) + ": " + peer().worker + " presented a wrong token",
                    {open.sender_rank},
                    {}});
  if (ended == nullptr || !ended->has(open.token)) {
    auto const* const retired = owner_.find_retired(open.token, header.epoch);
    if (retired != nullptr) return refused(retired->told_to(peer().worker));
    early_runs_.keep(header, *decoded);
    return ok();
  }
  if (ended->failure) {
    refusals_.drop(header.run);
    send_failure_notice(FrameType::abort, header.run, header.epoch, to_failure_notice(*ended->failure, open.token));
  } else if (ended->fingerprint != open.fingerprint) {
    return refused({EngineErrc::plan_mismatch,
                    "run " + std::to_string(header.run) + ": rank " + std::to_string(open.receiver_rank) + " ran '" +
                        (ended->description ? *ended->description : std::string()) + "', rank " +
                        std::to_string(open.sender_rank) + " runs '" + decoded->description() + "'",
                    {open.receiver_rank, open.sender_rank},
                    {}});
  }
  return ok();
}

Status ReceiveConnection::answer_open(RunOnLinks& run, links::DecodedOpen const& decoded, std::uint32_t epoch) {
  auto const answer = run.judge(decoded, epoch, peer());
  if (answer.channel == nullptr) {
    refusals_.refuse(run.spec().run, epoch, decoded.open.token, answer.refusal);
    if (answer.fails_the_run) owner_.fail_run(run.spec().run, answer.refusal);
    return ok();
  }
  answer.channel->receive_connection = this;
  answer.channel->receive_connection_number = number_;
  channels_.push_back(answer.channel);
  if (!decoded.lend)
    answer.channel->opened(nullptr);
  else if (!lent_opens_.answer(run, *answer.channel, *decoded.lend))
    return ok();
  was_opened(run, *answer.channel);
  return ok();
}

void ReceiveConnection::was_opened(RunOnLinks& run, ReceiveChannel& channel) {
  auto const id = run.spec().run;
  if (auto failure = run.device_failure()) return owner_.fail_run(id, std::move(*failure));
  if (channel.has_word()) schedule(channel);
  owner_.heard(id, channel.peer());
  owner_.touch(id);
}

void ReceiveConnection::decide(std::uint64_t id) {
  auto* const run = owner_.find_run(id);
  if (run == nullptr) return;
  if (auto* const channel = lent_opens_.decide(*run)) was_opened(*run, *channel);
}

template <class Take>
Status ReceiveConnection::take_by_channel(FrameHeader const& header, Take const& take) {
  auto* const channel = find(header.run);
  if (channel == nullptr && is_over(header.run)) return ok();
  if (channel == nullptr)
    return refusals_.bad_frame(std::string(name(header.type)) + " frame of run " + std::to_string(header.run) +
                               ", which nothing was borrowed for");
  if (auto const taken = take(*channel); taken.has_error()) return refusals_.bad_frame(taken.error().detail);
  owner_.touch(header.run);
  return ok();
}

Status ReceiveConnection::place_arrived() {
  owner_.look_for_standstill();
  auto const place = links::decode_place(control_payload());
  if (place.has_error()) return refusals_.bad_frame(place.error().detail);
  return take_by_channel(control_header(),
                         [&](ReceiveChannel& channel) { return channel.lies(control_header(), *place); });
}

void ReceiveConnection::abort_arrived(links::FailureNotice const& failure_notice) {
  auto const id = control_header().run;
  if (auto* const run = owner_.find_run(id)) {
    auto const rank = rank_of(run->spec(), peer().worker, peer().incarnation);
    if (rank && failure_notice.token == run->spec().token)
      owner_.fail_run(id, from_failure_notice(failure_notice, name_of(run->spec(), *rank)));
    return;
  }
  bool is_message = false;
  if (auto const* const early = early_runs_.find(id);
      early != nullptr && early->open.token == failure_notice.token && early->epoch == control_header().epoch) {
    is_message = early->envelope.has_value();
    early_runs_.forget(id);
  }
  if (auto const* const known = owner_.find_ended(id);
      known != nullptr && (known->was_started || known->has(failure_notice.token)))
    return;
  auto const failure = from_failure_notice(failure_notice, peer().worker);
  owner_.end_unstarted(id, control_header().epoch, failure_notice, failure);
  if (is_message) owner_.message_failed(failure_notice.token, control_header().epoch, failure);
}

void ReceiveConnection::lost(Error const& why) {
  auto const channels = std::exchange(channels_, {});
  lent_opens_.clear();
  sink_ = Sink::nowhere;
  auto const early_ones = early_runs_.remove_all();
  if (!is_beside()) owner_.forget_borrowed(peer());
  for (auto* channel : channels) channel->receive_connection = nullptr;
  for (auto* channel : channels)
    if (!owner_.outlives_link(*channel)) owner_.fail_for(why, channel->run(), channel->peer(), channel->where());
  early_runs_.report_lost(early_ones, why);
}

}  // namespace chorus::engine
