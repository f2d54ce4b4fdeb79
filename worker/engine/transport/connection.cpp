#include "worker/engine/transport/connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/transport/connection_owner.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {
namespace {

// A peer that does not read gets fewer answers, and finally loses the link.
constexpr std::size_t inquiries_max = 64, notes_max = 4096;

}  // namespace

Connection::Connection(ConnectionOwner& owner, Identity peer)
    : owner_(owner), counters_(owner.traffic().of(peer.worker)), peer_(std::move(peer)) {}

void Connection::attach(std::shared_ptr<links::Link> link, bool lends, Place place) {
  link_ = std::move(link);
  lends_ = lends;
  place_ = place;
  if (!is_beside()) counters_.connected(link_->kind());
  link_->start(*this);
  touch();
}

Connection::Queued& Connection::queue(links::FrameType type, std::uint64_t run, std::uint32_t epoch) {
  auto& queued = notes_.emplace_back();
  queued.header.type = type;
  queued.header.run = run;
  queued.header.epoch = epoch;
  touch();
  return queued;
}

void Connection::send_failure_notice(links::FrameType type, std::uint64_t run, std::uint32_t epoch,
                                     links::FailureNotice const& failure_notice) {
  auto& queued = queue(type, run, epoch);
  queued.header.length = links::encode(failure_notice, queued.bytes);
}

void Connection::send_ask(std::uint64_t run, std::uint32_t epoch, links::Ask const& ask) {
  if (notes_.size() >= inquiries_max) return;
  auto& queued = queue(links::FrameType::ask, run, epoch);
  queued.header.length = links::encode(ask, queued.bytes);
}

void Connection::send_tell(std::uint64_t run, std::uint32_t epoch, links::Tell const& tell) {
  if (notes_.size() >= inquiries_max) return;
  auto& queued = queue(links::FrameType::tell, run, epoch);
  queued.header.length = links::encode(tell, queued.bytes);
}

void Connection::send_borrow(std::uint64_t run, std::uint32_t epoch, links::Borrow const& borrow) {
  auto& queued = queue(links::FrameType::borrow, run, epoch);
  queued.header.length = links::encode(borrow, queued.bytes);
}

void Connection::send_returned(std::uint64_t run, std::uint32_t epoch) {
  queue(links::FrameType::returned, run, epoch).header.length = 0;
}

void Connection::send_room(links::FrameHeader const& header, links::Place const& place) {
  auto& queued = queue(links::FrameType::room, header.run, header.epoch);
  queued.header.message = header.message;
  queued.header.offset = header.offset;
  queued.header.length = sizeof place;
  std::memcpy(queued.bytes.data(), &place, sizeof place);
}

void Connection::depends(std::uint64_t run) {
  if (std::find(dependents_.begin(), dependents_.end(), run) == dependents_.end()) dependents_.push_back(run);
}

Status Connection::check_epoch(links::FrameHeader const& header) const {
  auto const* const run = owner_.find_run(header.run);
  if (run == nullptr || run->spec().epoch == header.epoch) return ok();
  return Error(links::LinkErrc::bad_frame, std::string(name(header.type)) + " frame of epoch " +
                                               std::to_string(header.epoch) + " for run " + std::to_string(header.run) +
                                               ", which is of epoch " + std::to_string(run->spec().epoch));
}

Status Connection::inquiry_arrived() {
  auto const& header = control_header();
  if (header.type == links::FrameType::ask) {
    auto const ask = links::decode_ask(control_payload());
    if (ask.has_error()) return ask.error();
    owner_.asked(*this, header.run, header.epoch, *ask);
    return ok();
  }
  auto tell = links::decode_tell(control_payload());
  if (tell.has_error()) return tell.error();
  std::erase(dependents_, header.run);
  owner_.told(peer_, header.run, std::move(*tell));
  return ok();
}

bool Connection::next_note(links::OutFrame& frame) {
  if (notes_.empty() || given_ == notes_.size())
    return false;  // tested before the size, because counting a deque takes longer
  auto const& queued = notes_[given_++];
  frame.header = queued.header;
  frame.payload = std::span(queued.bytes).first(queued.header.length);
  return true;
}

void Connection::note_sent() {
  notes_.pop_front();
  --given_;
}

void Connection::touch() {
  if (!closed_) owner_.flush_soon(*this);
}

void Connection::flush() {
  if (notes_.size() > notes_max)
    return fail(Error(EngineErrc::protocol_error, peer_.worker + " does not read what it is told"));
  if (link_ && !closed_) link_->flush();
}

void Connection::fail(Error why) {
  if (closing_ || closed_) return;
  closing_ = true;
  if (link_) link_->close_for(why);
  link_closed(std::move(why));
}

void Connection::link_rests() { owner_.settle(); }

void Connection::link_closed(Error why) {
  if (closed_) return;
  owner_.unfold_any_exchange();
  closed_ = true;
  owner_.connection_has_closed();
  if (!is_beside()) {
    if (link_) counters_.disconnected(link_->kind());
    if (!owner_.is_shut_down()) counters_.ended(end_of(why));
  }
  lost(why);
  for (auto const run : std::exchange(dependents_, {})) owner_.lost_touch(peer_, run, why);
  owner_.settle();
}

PeerCounters::End Connection::end_of(Error const& why) const {
  using enum PeerCounters::End;
  auto const code = code_of(why);
  if (code == EngineErrc::protocol_error || why.code == links::LinkErrc::bad_handshake) return malformed;
  if (code == EngineErrc::corrupt_frame) return corrupt;
  if (code != EngineErrc::peer_lost) return refused;
  return link_ ? closed : unreachable;
}

void Connection::collect(links::FrameHeader const& header) {
  control_header_ = header;
  control_filled_ = 0;
}

std::span<std::byte> Connection::collecting_space() {
  return std::span(control_).first(control_header_.length).subspan(control_filled_);
}

bool Connection::collected(std::size_t bytes) {
  control_filled_ += bytes;
  return control_filled_ == control_header_.length;
}

std::span<std::byte const> Connection::control_payload() const { return std::span(control_).first(control_filled_); }

}  // namespace chorus::engine
