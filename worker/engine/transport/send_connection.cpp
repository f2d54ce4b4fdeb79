#include "worker/engine/transport/send_connection.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/engine/transport/connection_owner.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::FrameType;

namespace {

// Limited, because the next run may use another GPU of the peer that can map this memory.
constexpr std::chrono::seconds refused_for{30};

}  // namespace

std::optional<std::uint64_t> SendConnection::lends(devices::GpuUnit const& gpu) {
  auto const now = owner_.surroundings().now();
  std::erase_if(unwanted_, [now](Unwanted const& each) { return now >= each.until; });
  if (!may_lend() || std::ranges::find(unwanted_, &gpu, &Unwanted::gpu) != unwanted_.end()) return std::nullopt;
  return owner_.options().incarnation;
}

void SendConnection::could_not_lend(Error const& why) {
  owner_.traffic().set_why_not_ipc(peer().worker, Direction::to_peer, why.detail);
}

void SendConnection::add(SendChannel& channel) {
  channel.send_connection = this;
  channels_.push_back(&channel);
  schedule(channel);
}

void SendConnection::remove(SendChannel& channel) {
  channel.send_connection = nullptr;
  if (!channel.finished()) given_up_.add(channel.run());
  if (auto loan = channel.loan()) loans_.push_back(std::move(loan));
  std::erase(channels_, &channel);
  scheduled_.remove(channel);
  if (link() != nullptr) link()->release(channel.run());
  in_flight_ -= channel.in_flight();
}

links::Taken SendConnection::send(links::CoalescedFrame const& coalesced_frame,
                                  std::chrono::steady_clock::time_point began) {
  bool const is_free = link() != nullptr && !is_closing() && !is_closed() && !has_notes() && scheduled_.empty();
  auto const taken = is_free ? link()->send_coalesced_frame(coalesced_frame) : links::Taken::nothing;
  if (taken == links::Taken::in_part && in_flight_++ == 0) busy_since_ = began;
  return taken;
}

void SendConnection::sent(links::CoalescedFrame const& coalesced_frame, std::chrono::steady_clock::duration took) {
  frame_moved();
  frame_moved();
  counters_.sent(coalesced_frame.data.length);
  counters_.was_sending(took);
}

bool SendConnection::send(links::MessageFrame const& message) {
  if (link() == nullptr || is_closing() || is_closed() || has_notes() || !link()->send_message(message)) return false;
  frame_moved();
  counters_.sent(message.header.length);
  return true;
}

RunOnLinks* SendConnection::last_to_wait() {
  auto runs = dependents();
  for (auto const* channel : channels_) runs.push_back(channel->run());
  RunOnLinks* last = nullptr;
  for (auto const run : runs)
    if (auto* const known = owner_.find_run(run))
      if (last == nullptr || known->spec().deadline > last->spec().deadline) last = known;
  return last;
}

void SendConnection::schedule(SendChannel& channel) {
  scheduled_.push(channel);
  touch();
}

SendChannel* SendConnection::find(std::uint64_t run) {
  for (auto* channel : channels_)
    if (channel->run() == run) return channel;
  return nullptr;
}

bool SendConnection::next_frame(links::OutFrame& frame) {
  if (next_note(frame)) return true;
  if (is_closing() || owner_.memory_is_unsound()) return false;
  while (!scheduled_.empty()) {
    auto& channel = scheduled_.pop();
    if (!channel.next_frame(frame)) continue;
    if (channel.has_frame()) scheduled_.push(channel);
    if (frame.header.type != FrameType::open && in_flight_++ == 0) busy_since_ = owner_.surroundings().now();
    return true;
  }
  return false;
}

void SendConnection::frame_sent(FrameHeader const& header) {
  if (!links::is_of_channel(header.type)) return note_sent();
  frame_moved();
  if (header.type != FrameType::open) {
    if (header.type == FrameType::data) counters_.sent(header.length);
    if (--in_flight_ == 0) counters_.was_sending(owner_.surroundings().now() - busy_since_);
  }
  auto* const channel = find(header.run);
  CHORUS_ASSERT(channel != nullptr, "frames of a run that ended were released");
  channel->frame_sent(header);
  if (channel->has_frame()) schedule(*channel);
  owner_.touch(header.run);
}

Status SendConnection::frame_arrives(FrameHeader const& header) {
  if (auto checked = links::check(header); checked.has_error()) return checked;
  if (owner_.has_device_runs()) owner_.look_for_standstill();
  owner_.unfold_exchange_of(header.run);
  frame_moved();
  auto const bad = [&](std::string const& why) { return Error(links::LinkErrc::bad_frame, why); };
  switch (header.type) {
    case FrameType::open:
    case FrameType::data:
    case FrameType::lies:
    case FrameType::wrote:
    case FrameType::message:
      return bad(std::string(name(header.type)) + " frame from the receiving side");
    case FrameType::abort:
    case FrameType::refuse:
    case FrameType::ask:
    case FrameType::tell:
      collect(header);
      return ok();
    case FrameType::borrow:
    case FrameType::read:
    case FrameType::returned:
    case FrameType::room:
      if (!may_lend()) return bad(std::string(name(header.type)) + " frame on a link that lends nothing");
      if (header.type == FrameType::room || header.type == FrameType::borrow) {
        collect(header);
        return ok();
      }
      if (auto checked = check_epoch(header); checked.has_error()) return checked;
      return header.type == FrameType::read ? read_arrived(header) : returned_arrived(header);
    case FrameType::grant:
      break;
  }
  if (auto* const channel = find(header.run)) {
    if (auto granted = channel->granted(header); granted.has_error()) return granted;
    if (channel->has_frame()) schedule(*channel);
    owner_.heard(header.run, channel->peer());
    return ok();
  }
  return belated(header);
}

Status SendConnection::payload_arrived(std::size_t bytes) {
  if (!collected(bytes)) return ok();
  if (auto checked = check_epoch(control_header()); checked.has_error()) return checked;
  auto const type = control_header().type;
  if (type == FrameType::borrow) return borrow_arrived();
  if (type == FrameType::room) return room_arrived();
  return type == FrameType::ask || type == FrameType::tell ? inquiry_arrived() : failure_notice_arrived();
}

void SendConnection::payload_at(std::span<std::byte const> payload) {
  std::memcpy(collecting_space().data(), payload.data(), payload.size());
}

Status SendConnection::failure_notice_arrived() {
  auto const failure_notice = links::decode_failure_notice(control_payload());
  if (failure_notice.has_error()) return failure_notice.error();
  auto const& header = control_header();
  if (header.type == FrameType::refuse && header.run == 0) {
    auto const code = static_cast<EngineErrc>(failure_notice->code);
    return Error(code, peer().worker + " refuses the link: " + failure_notice->text);
  }
  auto* const run = owner_.find_run(header.run);
  if (run == nullptr) {
    // The whole message was on its way, and its receiver has no use for it.
    auto const* const ended = owner_.find_ended(header.run);
    bool const was_run = ended != nullptr && ended->was_message && ended->has(failure_notice->token);
    if (was_run || header.run == failure_notice->token)
      owner_.message_failed(failure_notice->token, header.epoch, from_failure_notice(*failure_notice, peer().worker));
    return ok();
  }
  bool const is_abort = header.type == FrameType::abort;
  if (is_abort ? failure_notice->token != run->spec().token : find(header.run) == nullptr) return ok();
  // An abort may answer an ask of a run that sends nothing to this peer.
  auto const rank = rank_of(run->spec(), peer().worker, peer().incarnation);
  if (rank) owner_.fail_run(header.run, from_failure_notice(*failure_notice, name_of(run->spec(), *rank)));
  return ok();
}

Status SendConnection::borrow_arrived() {
  auto const borrow = links::decode_borrow(control_payload());
  if (borrow.has_error()) return borrow.error();
  auto const& header = control_header();
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  auto const way = borrow->head.way;
  if (auto const agreed = channel->borrowed(way); agreed.has_error()) return agreed;
  if (way == links::Way::refused) {
    auto const* const gpu = owner_.find_run(header.run)->spec().gpu;
    std::erase_if(unwanted_, [gpu](Unwanted const& each) { return each.gpu == gpu; });
    unwanted_.push_back({gpu, owner_.surroundings().now() + refused_for});
  }
  if (way != links::Way::in_frames) {
    auto why_not = way == links::Way::refused ? borrow->why_not : std::string();
    owner_.traffic().set_why_not_ipc(peer().worker, Direction::to_peer, std::move(why_not));
  }
  // Before this channel's frames: their results are written in the same pass if the room is known when they are read.
  owner_.decide(header.run);
  if (channel->has_frame()) schedule(*channel);
  owner_.heard(header.run, channel->peer());
  owner_.touch(header.run);
  return ok();
}

Status SendConnection::room_arrived() {
  owner_.look_for_standstill();
  auto const place = links::decode_place(control_payload());
  if (place.has_error()) return place.error();
  auto const& header = control_header();
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  if (auto const taken = channel->has_room(header, *place); taken.has_error()) return taken;
  owner_.touch(header.run);
  return ok();
}

Status SendConnection::read_arrived(FrameHeader const& header) {
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  if (auto const read = channel->was_read(header); read.has_error()) return read;
  if (channel->has_frame()) schedule(*channel);
  owner_.touch(header.run);
  return ok();
}

Status SendConnection::returned_arrived(FrameHeader const& header) {
  if (auto* const channel = find(header.run)) {
    channel->returned();
    owner_.touch(header.run);
    return ok();
  }
  // A device may have hung for so long that the run is forgotten.
  auto const is_of_run = [&header](auto const& loan) { return loan->run() == header.run; };
  for (auto const& loan : loans_)
    if (is_of_run(loan)) loan->returned();
  if (std::erase_if(loans_, is_of_run) != 0) owner_.surroundings().poll_devices_soon();
  return ok();
}

Status SendConnection::belated(FrameHeader const& header) const {
  if (owner_.find_ended(header.run) != nullptr || given_up_.may_have(header.run)) return ok();
  return Error(links::LinkErrc::bad_frame, std::string(name(header.type)) + " for run " + std::to_string(header.run) +
                                               ", which was never opened on this link");
}

// The link still exists, so the aborts of the runs tell the peer why.
void SendConnection::frame_is_corrupt(Error const& why) {
  owner_.unfold_any_exchange();
  auto const channels = channels_;
  for (auto* channel : channels)
    if (!owner_.outlives_link(*channel)) owner_.fail_for(why, channel->run(), channel->peer(), channel->where());
}

void SendConnection::lost(Error const& why) {
  if (in_flight_ != 0) counters_.was_sending(owner_.surroundings().now() - busy_since_);
  auto const now = owner_.surroundings().now();
  for (auto* channel : channels_)
    if (auto loan = channel->loan()) loans_.push_back(std::move(loan));
  bool const by_peer = why.code == links::LinkErrc::closed;
  for (auto const& loan : loans_) loan->link_ended(now, by_peer);
  auto const channels = std::move(channels_);
  channels_.clear();
  for (auto* channel : channels) channel->send_connection = nullptr;
  // Data that the link had taken may not have arrived; if the peer reports a corrupt frame, it has not.
  bool const is_corrupt = code_of(why) == EngineErrc::corrupt_frame;
  for (auto* channel : channels)
    if (is_corrupt || !owner_.outlives_link(*channel))
      owner_.fail_for(why, channel->run(), channel->peer(), channel->where());
}

}  // namespace chorus::engine
