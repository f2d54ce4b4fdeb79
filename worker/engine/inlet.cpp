#include "worker/engine/inlet.hpp"

#include <algorithm>
#include <cstring>

#include "worker/engine/engine.hpp"
#include "worker/links/errc.hpp"

namespace chorus::engine {
namespace {

using links::FrameHeader;
using links::FrameType;

constexpr std::size_t refused_max = 64;
// Using a smaller payload where it lies takes no time that is worth a look at the clock.
constexpr std::size_t timed_bytes = 16384;

}  // namespace

Inlet::Inlet(Engine& engine, Identity peer, std::uint64_t number)
    : Connection(engine, std::move(peer)), number_(number), scratch_(std::make_unique_for_overwrite<Memory>()) {}

ReceiveChannel* Inlet::find(std::uint64_t run) {
  for (auto* channel : channels_)
    if (channel->run() == run) return channel;
  return nullptr;
}

std::size_t Inlet::find_early(std::uint64_t run) const {
  std::size_t i = 0;
  while (i < early_.size() && early_[i]->run != run) ++i;
  return i;
}

void Inlet::forget_early(std::size_t index) {
  if (sink_ == Sink::early && arriving_early_ == early_[index].get()) sink_ = Sink::nowhere;
  early_.erase(early_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Inlet::schedule(ReceiveChannel& channel) {
  scheduled_.push(channel);
  touch();
}

void Inlet::remove(ReceiveChannel& channel) {
  channel.inlet = nullptr;
  std::erase(channels_, &channel);
  std::erase_if(undecided_, [&channel](Undecided const& each) { return each.channel == &channel; });
  scheduled_.remove(channel);
  if (sink_ == Sink::channel && channel_ == &channel) sink_ = Sink::nowhere;
  if (auto const early = find_early(channel.run()); early != early_.size()) forget_early(early);
}

bool Inlet::next_frame(links::OutFrame& frame) {
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

void Inlet::frame_sent(FrameHeader const& header) {
  if (header.type != FrameType::grant && header.type != FrameType::read) note_sent();
}

Status Inlet::bad(std::string why) {
  refuse(0, 0, 0, {EngineErrc::protocol_error, why, {}, {}});
  return Error(links::LinkErrc::bad_frame, std::move(why));
}

void Inlet::refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, Failure const& why) {
  send_verdict(FrameType::refuse, run, epoch, to_verdict(why, token));
  if (run == 0) return;
  if (refused_.size() == refused_max) refused_.erase(refused_.begin());
  refused_.push_back(run);
}

void Inlet::refuse_link(EngineErrc code, std::string why) {
  if (is_closed()) return;
  refuse(0, 0, 0, {code, why, {}, {}});
  fail(Error(code, std::move(why)));
}

void Inlet::forget(std::uint64_t run, std::uint32_t epoch, links::Verdict const& verdict) {
  auto const early = find_early(run);
  if (early == early_.size() || early_[early]->open.token != verdict.token) return;
  send_verdict(FrameType::abort, run, epoch, verdict);
  forget_early(early);
}

void Inlet::forget(std::uint64_t run, Failure const& why) {
  auto const early = find_early(run);
  if (early != early_.size()) forget(run, early_[early]->epoch, to_verdict(why, early_[early]->open.token));
}

void Inlet::retire(Retired const& epoch) {
  if (is_closed()) return;
  for (std::size_t i = early_.size(); i-- > 0;) {
    if (early_[i]->open.token != epoch.token || early_[i]->epoch != epoch.epoch) continue;
    refuse(early_[i]->run, early_[i]->epoch, epoch.token, epoch.told_to(peer().worker));
    forget_early(i);
  }
}

bool Inlet::awaits_parcel(FrameHeader const& open) const { return !is_closing() && engine_.awaits_parcel(open.run); }

bool Inlet::parcel_arrives(links::Parcel const& parcel) {
  if (!engine_.exchange_takes(parcel, peer(), *scratch_)) return false;
  frame_moved();
  frame_moved();
  counters_.received(parcel.data.length);
  return true;
}

Status Inlet::frame_arrives(FrameHeader const& header) {
  if (auto checked = links::check(header); checked.has_error()) return bad(checked.error().detail);
  if (engine_.has_device_runs()) engine_.look_for_standstill();
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
      if ((header.flags != 0 || header.type == FrameType::lies) && !may_lend())
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
    case FrameType::data:
      break;
  }
  return data_arrives(header);
}

// The frame may have been the open of any run that waits for one.
void Inlet::frame_is_corrupt(Error const& why) {
  refuse(0, 0, 0, {EngineErrc::corrupt_frame, why.detail, {}, {}});
  engine_.fail_awaiting(peer(), why);
}

Status Inlet::data_arrives(FrameHeader const& header) {
  if (auto* const channel = find(header.run)) {
    if (auto begun = channel->begin_frame(header, *scratch_); begun.has_error()) return bad(begun.error().detail);
    sink_ = Sink::channel;
    channel_ = channel;
    return ok();
  }
  if (auto const early = find_early(header.run); early != early_.size())
    return data_arrives_early(*early_[early], header);
  sink_ = Sink::nowhere;
  if (is_over(header.run)) return ok();
  return bad("data of run " + std::to_string(header.run) + ", which was never opened on this link");
}

bool Inlet::is_over(std::uint64_t run) const {
  bool const was_refused = std::find(refused_.begin(), refused_.end(), run) != refused_.end();
  return was_refused || engine_.find_ended(run) != nullptr;
}

std::span<std::byte> Inlet::payload_space() {
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
    case Sink::nowhere:
      break;
  }
  return *scratch_;
}

Status Inlet::payload_arrived(std::size_t bytes) {
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
    auto const verdict = links::decode_verdict(control_payload());
    if (verdict.has_error()) return bad(verdict.error().detail);
    abort_arrived(*verdict);
    return ok();
  }
  counters_.received(bytes);
  if (left_ != 0 && !timing_) {
    timing_ = true;
    since_ = engine_.surroundings_.now();
  } else if (left_ == 0 && timing_) {
    counters_.was_receiving(engine_.surroundings_.now() - since_);
  }
  if (sink_ == Sink::channel) {
    if (taken_)
      channel_->took();
    else
      channel_->filled(bytes);
    if (left_ == 0) engine_.touch(channel_->run());
  }
  if (sink_ == Sink::early && left_ == 0) return early_frame_ended();
  return ok();
}

void Inlet::payload_at(std::span<std::byte const> payload) {
  taken_ = true;
  if (sink_ == Sink::nowhere) return;
  if (sink_ != Sink::channel) {
    auto const space = payload_space();
    std::memcpy(space.data(), payload.data(), payload.size());
    return;
  }
  timing_ = payload.size() >= timed_bytes;
  if (timing_) since_ = engine_.surroundings_.now();
  channel_->take(payload);
}

void Inlet::payload_withdrawn() {
  if (sink_ == Sink::channel) channel_->withdrawn();
  if (sink_ == Sink::early) arriving_early_->frames.resize(early_at_);
  sink_ = Sink::nowhere;
}

Status Inlet::open_arrived() {
  auto const& header = control_header();
  auto decoded = links::decode_open(control_payload(), header.flags == links::lends_flag);
  if (decoded.has_error()) return bad(decoded.error().detail);
  auto const& open = decoded->open;
  if (header.run == 0) return bad("open frame for run 0");
  if (find(header.run) != nullptr || find_early(header.run) != early_.size())
    return bad("run " + std::to_string(header.run) + " was opened twice");
  if (open.receiver_incarnation != engine_.options().incarnation) {
    refuse(header.run, header.epoch, open.token,
           {EngineErrc::epoch_fenced,
            "this is another incarnation of " + engine_.options().worker,
            {open.receiver_rank},
            {}});
    return ok();
  }
  if (auto* const run = engine_.find_run(header.run)) return answer_open(*run, *decoded, header.epoch);
  auto const* const ended = engine_.find_ended(header.run);
  if (ended != nullptr && ended->was_started && !ended->has(open.token)) {
    refuse(header.run, header.epoch, open.token,
           {EngineErrc::forbidden,
            "run " + std::to_string(header.run) + ": " + peer().worker + " presented a wrong token",
            {open.sender_rank},
            {}});
    return ok();
  }
  if (ended == nullptr || !ended->has(open.token)) {
    auto const* const retired = engine_.find_retired(open.token, header.epoch);
    if (retired == nullptr) return keep_early(*decoded);
    refuse(header.run, header.epoch, open.token, retired->told_to(peer().worker));
    return ok();
  }
  if (ended->failure) {
    send_verdict(FrameType::abort, header.run, header.epoch, to_verdict(*ended->failure, open.token));
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

Status Inlet::answer_open(Run& run, links::DecodedOpen const& decoded, std::uint32_t epoch) {
  auto const answer = run.judge(decoded, epoch, peer());
  auto const id = run.spec().run;
  if (answer.channel == nullptr) {
    refuse(id, epoch, decoded.open.token, answer.refusal);
    if (answer.fails_the_run) engine_.fail_run(id, answer.refusal);
    return ok();
  }
  answer.channel->inlet = this;
  answer.channel->inlet_number = number_;
  channels_.push_back(answer.channel);
  if (decoded.lend) return answer_lend(run, *answer.channel, *decoded.lend);
  answer.channel->opened(nullptr);
  was_opened(run, *answer.channel);
  return ok();
}

void Inlet::was_opened(Run& run, ReceiveChannel& channel) {
  auto const id = run.spec().run;
  if (auto failure = run.device_failure()) return engine_.fail_run(id, std::move(*failure));
  if (channel.has_word()) schedule(channel);
  engine_.heard(id, channel.peer());
  engine_.touch(id);
}

void Inlet::abort_arrived(links::Verdict const& verdict) {
  auto const id = control_header().run;
  if (auto* const run = engine_.find_run(id)) {
    auto const rank = run->rank_of(peer().worker, peer().incarnation);
    if (rank && verdict.token == run->spec().token) engine_.fail_run(id, from_verdict(verdict, run->name_of(*rank)));
    return;
  }
  auto const index = find_early(id);
  if (index != early_.size() && early_[index]->open.token == verdict.token &&
      early_[index]->epoch == control_header().epoch)
    forget_early(index);
  if (auto const* const known = engine_.find_ended(id);
      known != nullptr && (known->was_started || known->has(verdict.token)))
    return;
  auto& ended = engine_.ended_.at(id);
  ended = {};
  ended.token = verdict.token;
  ended.failure = from_verdict(verdict, peer().worker);
  // Others may wait here for this rank's call, which will now fail at once.
  auto const epoch = control_header().epoch;
  for (auto& inlet : engine_.inlets_) inlet->forget(id, epoch, verdict);
}

void Inlet::lost(Error const& why) {
  auto const channels = std::move(channels_);
  channels_.clear();
  undecided_.clear();
  sink_ = Sink::nowhere;
  early_.clear();
  if (!is_beside()) engine_.borrowed_arenas_.forget(peer());
  for (auto* channel : channels) channel->inlet = nullptr;
  for (auto* channel : channels)
    if (!engine_.outlives_link(*channel)) engine_.fail_for(why, channel->run(), channel->peer(), channel->where());
}

}  // namespace chorus::engine
