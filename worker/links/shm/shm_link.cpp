#include "worker/links/shm/shm_link.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <cstring>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::links {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The most that one link moves before the other links of its thread have their turn.
constexpr std::size_t turn_bytes = 256u << 10;
// What a frame without payload counts.
constexpr std::size_t turn_frame_bytes = 1024;

ShmControl& control_at(std::span<std::byte> bytes) { return *reinterpret_cast<ShmControl*>(bytes.data()); }

}  // namespace

ShmLink::ShmLink(asio::ip::tcp::socket socket, ShmOffer offer)
    : ShmLink(std::move(socket), std::move(offer.control), ShmLoan(), control_at(offer.control.bytes()), true) {}

ShmLink::ShmLink(asio::ip::tcp::socket socket, ShmLoan loan)
    : ShmLink(std::move(socket), PeerBlock(), std::move(loan), control_at(loan.control), false) {}

// Takes rvalue references, so that the arguments are not moved from before `shared` has been evaluated.
ShmLink::ShmLink(asio::ip::tcp::socket socket, PeerBlock&& control, ShmLoan&& loan, ShmControl& shared, bool dials)
    : socket_(std::move(socket)),
      control_(std::move(control)),
      region_(std::move(loan.region)),
      out_(dials ? shared.forward : shared.back,
           dials ? std::span<RingLine>(shared.forward_ring) : std::span<RingLine>(shared.back_ring)),
      in_(dials ? shared.back : shared.forward,
          dials ? std::span<RingLine>(shared.back_ring) : std::span<RingLine>(shared.forward_ring)),
      own_sleep_(dials ? shared.dialer_sleeps : shared.acceptor_sleeps),
      peer_sleep_(dials ? shared.acceptor_sleeps : shared.dialer_sleeps),
      // Each entry has a line of the ring, except the entry of a copied frame, which comes after those of its parts.
      pending_(dials ? 2 * forward_lines : 0) {
  error_code ignored;  // a socket that refuses these options fails at its first read
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

ShmLink::~ShmLink() {
  if (!gone_) finish(false);
}

void ShmLink::start(LinkHandler& handler) {
  handler_ = &handler;
  wait_for_bell();
}

bool ShmLink::is_broken() const {
  return control_.arena() != nullptr ? control_.arena()->mapping().is_broken()
         : region_ != nullptr        ? region_->mapping().is_broken()
                                     : false;
}

void ShmLink::wait_for_bell() {
  listens_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     bell_memory_.bind([self = shared_from_this()](error_code) { self->bell_rang(); }));
}

void ShmLink::bell_rang() {
  listens_ = false;
  if (gone_) return;
  bool const ended = drain_bells();
  if (ended && closed_) return finish(true);
  if (ended) return peer_left();
  wait_for_bell();
  if (closed_) return;
  awake();
  static_cast<void>(poll());
}

// Returns true at the end of the connection.
bool ShmLink::drain_bells() {
  std::array<std::byte, 256> bells{};
  error_code error;
  auto const bytes = socket_.read_some(asio::buffer(bells), error);
  // If there are more bells, the next wait ends at once and reads them.
  if (!error) return bytes == 0;
  return error != asio::error::would_block && error != asio::error::try_again;
}

void ShmLink::announce_sleep() {
  if (closed_) return;
  bool const wants_room = blocked_ || references_ != 0;
  own_sleep_.store(sleeps_for_frames | (wants_room ? sleeps_for_room : 0), std::memory_order_relaxed);
}

void ShmLink::awake() {
  if (!closed_) own_sleep_.store(0, std::memory_order_relaxed);
}

void ShmLink::ring(std::uint32_t what_for) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((peer_sleep_.load(std::memory_order_relaxed) & what_for) == 0) return;
  if (peer_sleep_.exchange(0, std::memory_order_relaxed) == 0) return;
  static constexpr std::array<std::byte, 1> bell{};
  error_code ignored;  // a full socket holds bells already, and reading finds a peer that has gone
  socket_.write_some(asio::buffer(bell), ignored);
}

// Reads what the peer left in the ring before the link ends.
void ShmLink::peer_left() {
  peer_left_ = true;
  for (std::size_t turn = 0; turn < forward_lines && poll(); ++turn) {}
  fail(Error(LinkErrc::closed, "closed by the peer"));
}

void ShmLink::fail(Error why) {
  if (closed_ || closing_) return;
  if (is_broken()) why = Error(LinkErrc::broken, "the shared memory of the link was truncated");
  auto* const handler = handler_;
  close();
  handler->link_closed(std::move(why));
}

void ShmLink::close() {
  if (closed_ || closing_) return;
  closing_ = true;
  flush();
  closed_ = true;
  handler_ = nullptr;
  for (auto i = pending_begin_; i != pending_end_; ++i) {
    auto const& pending = pending_[i % pending_.size()];
    if (pending.kind == Pending::Kind::reference && !pending.released) out_.withdraw(pending.place);
  }
  bool const lingers = control_.arena() != nullptr && !peer_left_;
  if (!lingers) return finish(peer_left_);
  error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) return finish(true);
  if (!listens_) wait_for_bell();
}

void ShmLink::let_go() {
  if (!gone_) finish(false);
}

void ShmLink::finish(bool peer_is_done) {
  closed_ = true;
  gone_ = true;
  handler_ = nullptr;
  error_code ignored;
  socket_.close(ignored);
  if (!peer_is_done) {
    control_.leak();
    staging_.leak();
  }
  control_ = {};
  staging_ = {};
}

// ---- to the peer

void ShmLink::flush() {
  if (closed_ || handler_ == nullptr || flushing_) return;
  flushing_ = true;
  blocked_ = false;
  yields_ = false;
  auto const yields_at = staged_ + slots;
  while (!closed_) {
    if (staged_ >= yields_at) {
      yields_ = true;
      break;
    }
    if (!has_current_) {
      if (!handler_->next_frame(current_)) break;
      has_current_ = true;
      put_bytes_ = 0;
    }
    if (put_current()) continue;
    if (reap()) continue;
    blocked_ = !closed_;
    break;
  }
  flushing_ = false;
  if (std::exchange(has_unrung_, false) && !closed_) ring(sleeps_for_frames);
}

// Puts the rest of the current frame, or its next part. False if there is no room.
bool ShmLink::put_current() {
  auto const payload = current_.payload;
  auto const header = current_.header;
  auto const* const arena = control_.arena();
  bool told = true;
  if (payload.size() <= in_ring_bytes_max) {
    if (!out_.put(header, payload)) return false;
  } else if (auto const place = arena != nullptr && put_bytes_ == 0 ? arena->offset_of(payload) : std::nullopt) {
    auto const at = out_.put_reference(header, *place);
    if (!at) return false;
    pend(*at, header, Pending::Kind::reference);
    told = false;
  } else {
    if (!put_part()) return false;
    if (put_bytes_ != payload.size()) return true;
  }
  // One bell for an open and its message: a peer woken by the open alone would sleep again before the message.
  has_unrung_ = true;
  has_current_ = false;
  if (!told) return true;
  // frame_sent() of data frames in order: the handler concludes that the frames before it were read, too.
  if (untold_ != 0 && header.type == FrameType::data)
    pend(pending_[(pending_end_ - 1) % pending_.size()].place, header, Pending::Kind::copied);
  else
    handler_->frame_sent(header);
  return true;
}

// Puts the next part of the current frame as a frame of its own. False if there is no room.
bool ShmLink::put_part() {
  CHORUS_ASSERT(current_.header.type == FrameType::data, "control frames fit into the ring");
  bool const through_slot = can_stage();
  if (through_slot && staged_ - unstaged_ == slots) return false;
  auto const part =
      current_.payload.subspan(put_bytes_)
          .first(std::min(current_.payload.size() - put_bytes_, through_slot ? slot_bytes : in_ring_bytes_max));
  auto header = current_.header;
  header.offset += put_bytes_;
  header.length = static_cast<std::uint32_t>(part.size());
  if (through_slot) {
    auto const from = staged_ % slots * slot_bytes;
    // A free slot may be written before the ring has room.
    std::memcpy(staging_.bytes().data() + from, part.data(), part.size());
    auto const at = out_.put_reference(header, staging_.offset() + from);
    if (!at) return false;
    ++staged_;
    pend(*at, header, Pending::Kind::slot);
  } else if (!out_.put(header, part)) {
    return false;
  }
  put_bytes_ += part.size();
  ring(sleeps_for_frames);  // the peer reads this part while the next one is copied
  return true;
}

bool ShmLink::can_stage() {
  if (staging_.arena() != nullptr) return true;
  if (cannot_stage_ || control_.arena() == nullptr) return false;
  auto block = PeerBlock::allocate(*control_.arena(), slots * slot_bytes);
  cannot_stage_ = block.has_error();
  if (cannot_stage_) return false;
  staging_ = std::move(*block);
  return true;
}

void ShmLink::pend(std::uint64_t place, FrameHeader const& header, Pending::Kind kind) {
  CHORUS_ASSERT(pending_end_ - pending_begin_ < pending_.size(), "what is pending stands in the ring");
  pending_[pending_end_++ % pending_.size()] = {place, header, kind, false};
  if (kind == Pending::Kind::reference) ++references_;
  if (kind != Pending::Kind::slot) ++untold_;
}

// Handles what the peer has received; returns true if that is more than before.
bool ShmLink::reap() {
  if (pending_begin_ == pending_end_ && !blocked_ && !has_current_) return false;
  auto const before = out_.received_so_far();
  auto const received = out_.received();
  if (received.has_error()) {
    fail(received.error());
    return false;
  }
  while (!closed_ && pending_begin_ != pending_end_) {
    auto const pending = pending_[pending_begin_ % pending_.size()];
    if (pending.place >= *received) break;
    ++pending_begin_;
    if (pending.kind == Pending::Kind::slot) {
      ++unstaged_;
      continue;
    }
    if (pending.kind == Pending::Kind::reference) --references_;
    --untold_;
    if (!pending.released) handler_->frame_sent(pending.header);
  }
  return !closed_ && *received != before;
}

void ShmLink::release(std::uint64_t run) {
  auto const is_of_run = [&](FrameHeader const& header) { return header.run == run && is_of_channel(header.type); };
  if (closed_) return;
  if (has_current_ && is_of_run(current_.header)) has_current_ = false;
  for (auto i = pending_begin_; i != pending_end_; ++i) {
    auto& pending = pending_[i % pending_.size()];
    if (pending.kind == Pending::Kind::slot || pending.released || !is_of_run(pending.header)) continue;
    pending.released = true;
    if (pending.kind == Pending::Kind::reference) out_.withdraw(pending.place);
  }
}

// ---- from the peer

bool ShmLink::poll() {
  if (closed_ || handler_ == nullptr) return false;
  bool moved = reap();
  if (yields_ || (moved && blocked_)) {
    flush();
    moved = true;
  }
  if (!closed_) moved = read() || moved;
  if (moved && !closed_) handler_->link_rests();
  return moved;
}

bool ShmLink::read() {
  std::size_t budget = turn_bytes;
  bool any = false;
  while (budget != 0) {
    RingReceiver::Record record;
    auto const there = in_.look(record);
    if (there.has_error() || is_broken()) {
      fail(there.has_error() ? there.error() : Error(LinkErrc::broken, ""));
      return true;
    }
    if (!*there) break;
    any = true;
    if (record.head.kind != RecordKind::withdrawn) {
      if (auto const taken = take(record); taken.has_error()) {
        fail(taken.error());
        return true;
      }
      if (closed_) return true;
    }
    bool const tells = in_.advance(record.head.kind, record.head.frame.length);
    if (tells || record.head.kind != RecordKind::in_ring) ring(sleeps_for_room);
    budget -= std::min<std::size_t>(budget, record.head.frame.length + turn_frame_bytes);
  }
  return any;
}

Status ShmLink::take(RingReceiver::Record const& record) {
  auto const& header = record.head.frame;
  if (auto accepted = handler_->frame_arrives(header); accepted.has_error() || closed_) return accepted;
  if (header.length == 0) return ok();
  auto const payload = payload_of(record);
  if (payload.has_error()) return payload.error();
  handler_->payload_at(*payload);
  if (closed_) return ok();
  if (is_broken()) return Error(LinkErrc::broken, "");
  if (record.head.kind == RecordKind::reference && !in_.still_stands()) {
    handler_->payload_withdrawn();
    return ok();
  }
  return handler_->payload_arrived(header.length);
}

Result<std::span<std::byte const>> ShmLink::payload_of(RingReceiver::Record const& record) const {
  auto const length = record.head.frame.length;
  auto const bad = [&](std::string const& why) {
    return Error(LinkErrc::bad_frame, "a payload of " + std::to_string(length) + " bytes " + why);
  };
  if (record.head.kind == RecordKind::in_ring) {
    if (length > in_ring_bytes_max || length > record.in_ring.size()) return bad("beyond what a ring can hold");
    return record.in_ring.first(length);
  }
  if (region_ == nullptr) return bad("by reference from the accepting side");
  auto const bytes = region_->mapping().at(record.head.reference, length);
  if (bytes.empty()) return bad("at byte " + std::to_string(record.head.reference) + " of the region, beyond its end");
  return bytes;
}

}  // namespace chorus::links
