#include "worker/engine/transport/receive_connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/transport/connection_owner.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {
namespace {

using links::FrameHeader;
using links::FrameType;

constexpr std::size_t refused_max = 64;
// Processing a smaller payload in place is too short to be timed.
constexpr std::size_t timed_bytes = 16384;

}  // namespace

ReceiveConnection::ReceiveConnection(ConnectionOwner& owner, Identity peer, std::uint64_t number)
    : Connection(owner, std::move(peer)), number_(number), scratch_(std::make_unique_for_overwrite<Memory>()) {}

ReceiveChannel* ReceiveConnection::find(std::uint64_t run) {
  for (auto* channel : channels_)
    if (channel->run() == run) return channel;
  return nullptr;
}

std::size_t ReceiveConnection::find_early(std::uint64_t run) const {
  std::size_t i = 0;
  while (i < early_.size() && early_[i]->run != run) ++i;
  return i;
}

void ReceiveConnection::forget_early(std::size_t index) {
  if (sink_ == Sink::early && arriving_early_ == early_[index].get()) sink_ = Sink::nowhere;
  early_.erase(early_.begin() + static_cast<std::ptrdiff_t>(index));
}

void ReceiveConnection::schedule(ReceiveChannel& channel) {
  scheduled_.push(channel);
  touch();
}

void ReceiveConnection::remove(ReceiveChannel& channel) {
  channel.receive_connection = nullptr;
  std::erase(channels_, &channel);
  std::erase_if(undecided_, [&channel](Undecided const& each) { return each.channel == &channel; });
  scheduled_.remove(channel);
  if (sink_ == Sink::channel && channel_ == &channel) sink_ = Sink::nowhere;
  if (auto const early = find_early(channel.run()); early != early_.size()) forget_early(early);
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

Status ReceiveConnection::bad(std::string why) {
  refuse(0, 0, 0, {EngineErrc::protocol_error, why, {}, {}});
  return Error(links::LinkErrc::bad_frame, std::move(why));
}

void ReceiveConnection::refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, Failure const& why) {
  send_failure_notice(FrameType::refuse, run, epoch, to_failure_notice(why, token));
  if (run == 0) return;
  if (refused_.size() == refused_max) {
    refused_.erase(refused_.begin());
    has_forgotten_ = true;
  }
  refused_.push_back(run);
}

void ReceiveConnection::refuse_link(EngineErrc code, std::string why) {
  if (is_closed()) return;
  refuse(0, 0, 0, {code, why, {}, {}});
  fail(Error(code, std::move(why)));
}

void ReceiveConnection::forget(std::uint64_t run, std::uint32_t epoch, links::FailureNotice const& failure_notice) {
  auto const early = find_early(run);
  if (early == early_.size() || early_[early]->open.token != failure_notice.token) return;
  send_failure_notice(FrameType::abort, run, epoch, failure_notice);
  forget_early(early);
}

void ReceiveConnection::forget(std::uint64_t run, Failure const& why) {
  auto const early = find_early(run);
  if (early != early_.size()) forget(run, early_[early]->epoch, to_failure_notice(why, early_[early]->open.token));
}

void ReceiveConnection::retire(Retired const& epoch) {
  if (is_closed()) return;
  for (std::size_t i = early_.size(); i-- > 0;) {
    if (early_[i]->open.token != epoch.token || early_[i]->epoch != epoch.epoch) continue;
    refuse(early_[i]->run, early_[i]->epoch, epoch.token, epoch.told_to(peer().worker));
    forget_early(i);
  }
  auto const is_of_epoch = [&](EarlyMessage const& early) {
    return early.header.run == epoch.token && early.header.epoch == epoch.epoch;
  };
  if (std::erase_if(early_small_, is_of_epoch) != 0)
    refuse_small_messages(epoch.token, epoch.epoch, epoch.told_to(peer().worker));
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
  if (auto checked = links::check(header); checked.has_error()) return bad(checked.error().detail);
  if (owner_.has_device_runs()) owner_.look_for_standstill();
  left_ = header.length;
  timing_ = false;
  taken_ = false;
  frame_moved();
  switch (header.type) {
    case FrameType::wrote:
      if (!may_lend()) return bad("wrote frame on a link that lends no memory of a GPU");
      return written_arrived(header);
    case FrameType::open:
    case FrameType::lies:
      if ((header.flags == links::lends_flag || header.type == FrameType::lies) && !may_lend())
        return bad(std::string(name(header.type)) + " frame with memory of a GPU on a link that lends none");
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
      return bad(std::string(name(header.type)) + " frame from the sending side");
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
  refuse(0, 0, 0, {EngineErrc::corrupt_frame, why.detail, {}, {}});
  owner_.fail_awaiting(peer(), why);
}

Status ReceiveConnection::data_arrives(FrameHeader const& header) {
  if (auto* const channel = find(header.run)) {
    if (auto begun = channel->begin_frame(header, *scratch_); begun.has_error()) return bad(begun.error().detail);
    sink_ = Sink::channel;
    channel_ = channel;
    return ok();
  }
  if (auto const early = find_early(header.run); early != early_.size())
    return data_arrives_early(*early_[early], header);
  sink_ = Sink::nowhere;
  if (has_forgotten_ || is_over(header.run)) return ok();
  return bad("data of run " + std::to_string(header.run) + ", which was never opened on this link");
}

bool ReceiveConnection::is_over(std::uint64_t run) const {
  bool const was_refused = std::find(refused_.begin(), refused_.end(), run) != refused_.end();
  return was_refused || owner_.find_ended(run) != nullptr;
}

std::span<std::byte> ReceiveConnection::payload_space() {
  switch (sink_) {
    case Sink::control:
      return collecting_space();
    case Sink::channel:
      return channel_->space();
    case Sink::early: {
      auto const frame = std::span(arriving_early_->frames).subspan(early_at_);
      FrameHeader header;
      std::memcpy(&header, frame.data(), sizeof header);
      return frame.subspan(sizeof header + header.length - left_, left_);
    }
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
    if (auto const checked = check_epoch(control_header()); checked.has_error()) return bad(checked.error().detail);
    if (control_header().type == FrameType::lies) return place_arrived();
    if (control_header().type != FrameType::abort) {
      auto const understood = inquiry_arrived();
      return understood.has_error() ? bad(understood.error().detail) : understood;
    }
    auto const failure_notice = links::decode_failure_notice(control_payload());
    if (failure_notice.has_error()) return bad(failure_notice.error().detail);
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
  if (sink_ == Sink::early && left_ == 0) return early_frame_ended();
  if (sink_ == Sink::message && left_ == 0) message_arrived();
  return ok();
}

void ReceiveConnection::payload_at(std::span<std::byte const> payload) {
  taken_ = true;
  if (sink_ == Sink::nowhere) return;
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
  if (sink_ == Sink::early) arriving_early_->frames.resize(early_at_);
  sink_ = Sink::nowhere;
}

Status ReceiveConnection::open_arrived() {
  auto const& header = control_header();
  auto decoded = links::decode_open(control_payload(), header.flags);
  if (decoded.has_error()) return bad(decoded.error().detail);
  auto const& open = decoded->open;
  if (header.run == 0) return bad("open frame for run 0");
  if (find(header.run) != nullptr || find_early(header.run) != early_.size())
    return bad("run " + std::to_string(header.run) + " was opened twice");
  if (open.receiver_incarnation != owner_.options().incarnation) {
    refuse(header.run, header.epoch, open.token,
           {EngineErrc::epoch_fenced,
            "this is another incarnation of " + owner_.options().worker,
            {open.receiver_rank},
            {}});
    return ok();
  }
  if (auto* const run = owner_.find_run(header.run)) return answer_open(*run, *decoded, header.epoch);
  auto const* const ended = owner_.find_ended(header.run);
  if (ended != nullptr && ended->was_started && !ended->has(open.token)) {
    refuse(header.run, header.epoch, open.token,
           {EngineErrc::forbidden,
            "run " + std::to_string(header.run) + ": " + peer().worker + " presented a wrong token",
            {open.sender_rank},
            {}});
    return ok();
  }
  if (ended == nullptr || !ended->has(open.token)) {
    auto const* const retired = owner_.find_retired(open.token, header.epoch);
    if (retired == nullptr) return keep_early(*decoded);
    refuse(header.run, header.epoch, open.token, retired->told_to(peer().worker));
    return ok();
  }
  if (ended->failure) {
    send_failure_notice(FrameType::abort, header.run, header.epoch, to_failure_notice(*ended->failure, open.token));
  } else if (ended->fingerprint != open.fingerprint) {
    refuse(header.run, header.epoch, open.token,
           {EngineErrc::plan_mismatch,
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
  auto const id = run.spec().run;
  if (answer.channel == nullptr) {
    refuse(id, epoch, decoded.open.token, answer.refusal);
    if (answer.fails_the_run) owner_.fail_run(id, answer.refusal);
    return ok();
  }
  answer.channel->receive_connection = this;
  answer.channel->receive_connection_number = number_;
  channels_.push_back(answer.channel);
  if (decoded.lend) return answer_lend(run, *answer.channel, *decoded.lend);
  answer.channel->opened(nullptr);
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

void ReceiveConnection::abort_arrived(links::FailureNotice const& failure_notice) {
  auto const id = control_header().run;
  if (auto* const run = owner_.find_run(id)) {
    auto const rank = rank_of(run->spec(), peer().worker, peer().incarnation);
    if (rank && failure_notice.token == run->spec().token)
      owner_.fail_run(id, from_failure_notice(failure_notice, name_of(run->spec(), *rank)));
    return;
  }
  auto const index = find_early(id);
  bool is_message = false;
  if (index != early_.size() && early_[index]->open.token == failure_notice.token &&
      early_[index]->epoch == control_header().epoch) {
    is_message = early_[index]->envelope.has_value();
    forget_early(index);
  }
  if (auto const* const known = owner_.find_ended(id);
      known != nullptr && (known->was_started || known->has(failure_notice.token)))
    return;
  auto const failure = from_failure_notice(failure_notice, peer().worker);
  owner_.end_unstarted(id, control_header().epoch, failure_notice, failure);
  if (is_message) owner_.message_failed(failure_notice.token, control_header().epoch, failure);
}

void ReceiveConnection::lost(Error const& why) {
  auto const channels = std::move(channels_);
  channels_.clear();
  undecided_.clear();
  sink_ = Sink::nowhere;
  auto const early_ones = std::exchange(early_, {});
  if (!is_beside()) owner_.forget_borrowed(peer());
  for (auto* channel : channels) channel->receive_connection = nullptr;
  for (auto* channel : channels)
    if (!owner_.outlives_link(*channel)) owner_.fail_for(why, channel->run(), channel->peer(), channel->where());
  for (auto const& early : early_ones)
    if (early->envelope)
      owner_.message_failed(early->open.token, early->epoch,
                            {code_of(why),
                             "lost rank " + std::to_string(early->open.sender_rank) + " (" + peer().worker +
                                 ") before its message was received: " + why.detail,
                             {early->open.sender_rank},
                             {}});
}

}  // namespace chorus::engine
