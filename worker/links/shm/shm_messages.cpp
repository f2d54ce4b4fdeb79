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
  std::span<std::byte const> in_ring;
  if (!in_.look_in_ring(message.header, in_ring)) return in_.is_empty() ? Next::nothing : Next::other;
  auto const length = message.header.length;
  if (message.header.type != FrameType::message || length < sizeof message.head ||
      length > std::min(in_ring_bytes_max, in_ring.size()))
    return Next::other;
  std::memcpy(&message.head, in_ring.data(), sizeof message.head);
  message.content = in_ring.first(length).subspan(sizeof message.head);
  return Next::message;
}

bool ShmLink::pass_message(MessageFrame const& message) {
  if (is_broken()) return false;
  if (in_.advance(RecordKind::in_ring, message.header.length)) ring(sleeps_for_room);
  return true;
}

}  // namespace chorus::links
