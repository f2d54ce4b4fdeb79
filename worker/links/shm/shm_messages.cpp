// Small messages of a link through shared memory, past its queue of frames.
#include <algorithm>
#include <cstring>

#include "worker/links/shm/shm_link.hpp"

namespace chorus::links {

// An impossible position of the peer is found again by the frames of next_frame().
bool ShmLink::send_message(MessageFrame const& message) {
  if (closed_ || handler_ == nullptr || has_current_) return false;
  auto const put = [&] { return out_.put(message.header, message.head, message.content); };
  if (!put() && (out_.received().has_error() || !put())) return false;
  ring(sleeps_for_frames);
  return true;
}

// Errors are found again by read().
Link::Next ShmLink::look_at_message(MessageFrame& message, unsigned polls) {
  if (closed_ || handler_ == nullptr) return Next::other;
  while (in_.is_empty())
    if (polls-- == 0) return Next::nothing;
  RingReceiver::Record record;
  auto const there = in_.look(record);
  if (there.has_error()) return Next::other;
  if (!*there) return Next::nothing;
  auto const& header = record.head.frame;
  if (record.head.kind != RecordKind::in_ring || header.type != FrameType::message ||
      header.length < sizeof message.head || header.length > std::min(in_ring_bytes_max, record.in_ring.size()))
    return Next::other;
  message.header = header;
  std::memcpy(&message.head, record.in_ring.data(), sizeof message.head);
  message.content = record.in_ring.first(header.length).subspan(sizeof message.head);
  return Next::message;
}

bool ShmLink::pass_message(MessageFrame const& message) {
  if (is_broken()) return false;
  if (in_.advance({{message.header, 0, RecordKind::in_ring}, {}})) ring(sleeps_for_room);
  return true;
}

}  // namespace chorus::links
