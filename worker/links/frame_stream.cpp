#include "worker/links/frame_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.hpp"
#include "collectives/core/assert.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::links {
namespace {

constexpr std::size_t head_bytes(Framing framing) {
  return framing == Framing::checksummed ? sizeof(FrameHead) : sizeof(FrameHeader);
}
constexpr std::size_t inbox_bytes = 16384;
// After a payload of at least this size only the next header is read ahead, so that the payload after it is received in
// place too. After smaller payloads, reading many frames at once and copying them is cheaper.
constexpr std::size_t bulk_bytes = 4096;

}  // namespace

FrameReader::FrameReader(Framing framing)
    : framing_(framing),
      head_bytes_(head_bytes(framing)),
      inbox_(std::make_unique_for_overwrite<std::byte[]>(inbox_bytes)) {}

FrameReader::Space FrameReader::space(LinkHandler& handler) {
  in_place_ = {};
  if (payload_left_ == 0) return {std::span(inbox_.get() + inbox_end_, inbox_bytes - inbox_end_), {}};
  auto payload = handler.payload_space();
  CHORUS_ASSERT(!payload.empty(), "a payload that is awaited has a place to go");
  payload = payload.first(std::min(payload.size(), payload_left_));
  in_place_ = payload;
  if (payload.size() < payload_left_) return {payload, {}};
  return {payload, std::span(inbox_.get(), payload.size() >= bulk_bytes ? head_bytes_ : inbox_bytes)};
}

Status FrameReader::arrived(LinkHandler& handler, std::size_t bytes, bool const& closed) {
  auto const in_place = in_place_.first(std::min(bytes, in_place_.size()));
  if (!in_place.empty())
    if (auto placed = take_payload(handler, in_place); placed.has_error() || closed) return placed;
  inbox_end_ += bytes - in_place.size();
  in_place_ = {};
  return parse(handler, closed);
}

Status FrameReader::feed(LinkHandler& handler, std::string_view bytes, bool const& closed) {
  while (!bytes.empty()) {
    auto const space = std::min(bytes.size(), inbox_bytes - inbox_end_);
    std::memcpy(inbox_.get() + inbox_end_, bytes.data(), space);
    inbox_end_ += space;
    bytes.remove_prefix(space);
    if (auto parsed = parse(handler, closed); parsed.has_error() || closed) return parsed;
  }
  return ok();
}

Status FrameReader::parse(LinkHandler& handler, bool const& closed) {
  std::size_t at = 0;
  while (at < inbox_end_) {
    if (payload_left_ != 0) {
      auto const space = handler.payload_space();
      auto const bytes = std::min({space.size(), payload_left_, inbox_end_ - at});
      std::memcpy(space.data(), inbox_.get() + at, bytes);
      at += bytes;
      if (auto placed = take_payload(handler, space.first(bytes)); placed.has_error() || closed) return placed;
    } else if (inbox_end_ - at >= head_bytes_) {
      if (auto const coalesced_frame = coalesced_frame_at(at, handler);
          coalesced_frame && handler.coalesced_frame_arrives(*coalesced_frame)) {
        at += 2 * head_bytes_ + coalesced_frame->open.length + coalesced_frame->data.length;
        frames_ += 2;
        continue;
      }
      auto const* const head = inbox_.get() + at;
      at += head_bytes_;
      if (auto accepted = begin_frame(handler, head); accepted.has_error() || closed) return accepted;
    } else {
      break;
    }
  }
  inbox_end_ -= at;
  std::memmove(inbox_.get(), inbox_.get() + at, inbox_end_);
  return ok();
}

// On links with checksums, returns intact coalesced frames only. Others arrive frame by frame, where the error is
// reported. Checksums are computed only if the handler awaits the frame.
std::optional<CoalescedFrame> FrameReader::coalesced_frame_at(std::size_t at, LinkHandler const& handler) const {
  auto const bytes = std::span<std::byte const>(inbox_.get(), inbox_end_).subspan(at);
  FrameHead open, data;
  std::memcpy(&open, bytes.data(), head_bytes_);
  auto const data_at = head_bytes_ + open.header.length;
  if (open.header.type != FrameType::open || bytes.size() < data_at + head_bytes_) return std::nullopt;
  if (!handler.awaits_coalesced_frame(open.header)) return std::nullopt;
  std::memcpy(&data, bytes.data() + data_at, head_bytes_);
  auto const payload = bytes.subspan(data_at + head_bytes_);
  if (data.header.type != FrameType::data || data.header.length > std::min(payload.size(), coalesced_frame_bytes_max))
    return std::nullopt;
  CoalescedFrame const coalesced_frame{open.header, bytes.subspan(head_bytes_, open.header.length), data.header,
                                       payload.first(data.header.length)};
  if (framing_ == Framing::checksummed && (open.check != check_of(coalesced_frame.open, coalesced_frame.opening) ||
                                           data.check != check_of(coalesced_frame.data, coalesced_frame.payload)))
    return std::nullopt;
  return coalesced_frame;
}

Status FrameReader::begin_frame(LinkHandler& handler, std::byte const* head) {
  std::memcpy(&head_, head, head_bytes_);
  ++frames_;
  payload_crc_ = 0;
  if (framing_ == Framing::checksummed && !is_intact(head_)) return corrupt(handler, "its header");
  if (auto accepted = handler.frame_arrives(head_.header); accepted.has_error()) return accepted;
  payload_left_ = head_.header.length;
  return ok();
}

// The checksum is updated while the bytes are in the cache, and checked before the handler uses the frame.
Status FrameReader::take_payload(LinkHandler& handler, std::span<std::byte const> bytes) {
  payload_left_ -= bytes.size();
  if (framing_ == Framing::checksummed) {
    payload_crc_ = http::crc32c(payload_crc_, bytes);
    if (payload_left_ == 0 && payload_crc_ != head_.check.payload) {
      auto const& header = head_.header;
      return corrupt(handler, std::string(name(header.type)) + " of run " + std::to_string(header.run) + ", " +
                                  std::to_string(header.length) + " bytes of message " +
                                  std::to_string(header.message) + " at byte " + std::to_string(header.offset));
    }
  }
  return handler.payload_arrived(bytes.size());
}

Status FrameReader::corrupt(LinkHandler& handler, std::string const& what) const {
  Error why(LinkErrc::corrupt_frame,
            "frame " + std::to_string(frames_) + " of the link was changed on the way: " + what);
  handler.frame_is_corrupt(why);
  return why;
}

void FrameWriter::fill(LinkHandler& handler) {
  for (OutFrame frame; count_ < frames_max; ++count_) {
    if (!handler.next_frame(frame)) return;
    slot(count_) = {head(frame.header, frame.payload), frame.payload};
  }
}

FrameHead FrameWriter::head(FrameHeader const& header, std::span<std::byte const> payload) const {
  FrameHead head{header, {}};
  if (framing_ == Framing::checksummed) head.check = check_of(header, payload);
  return head;
}

std::span<std::byte const> FrameWriter::head_of(Slot const& of) const {
  return std::as_bytes(std::span(&of.head, 1)).first(head_bytes(framing_));
}

std::size_t FrameWriter::size_of(Slot const& of) const { return head_bytes(framing_) + of.payload.size(); }

std::size_t FrameWriter::lay(CoalescedFrame const& coalesced_frame,
                             std::span<std::byte, coalesced_frame_size_max> to) const {
  auto* at = to.data();
  auto const put = [&](std::span<std::byte const> bytes) {
    CHORUS_ASSERT(bytes.size() <= static_cast<std::size_t>(to.data() + to.size() - at), "a coalesced frame is small");
    std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  };
  for (auto const& [header, payload] : {std::pair(coalesced_frame.open, coalesced_frame.opening),
                                        std::pair(coalesced_frame.data, coalesced_frame.payload)}) {
    Slot const frame{head(header, payload), payload};
    put(head_of(frame));
    put(payload);
  }
  return static_cast<std::size_t>(at - to.data());
}

std::size_t FrameWriter::lay(MessageFrame const& message, std::span<std::byte, message_frame_size_max> to) const {
  auto const payload = to.subspan(head_bytes(framing_), message.header.length);
  std::memcpy(payload.data(), &message.head, sizeof message.head);
  std::copy(message.content.begin(), message.content.end(), payload.begin() + sizeof message.head);
  auto const begin = head(message.header, payload);
  std::memcpy(to.data(), &begin, head_bytes(framing_));
  return head_bytes(framing_) + payload.size();
}

void FrameWriter::hold(std::span<std::byte const> rest) {
  CHORUS_ASSERT(empty(), "a message frame goes alone");
  rest_.assign(rest.begin(), rest.end());
  written_of_rest_ = 0;
}

void FrameWriter::hold(CoalescedFrame const& coalesced_frame, std::size_t written) {
  CHORUS_ASSERT(empty(), "a coalesced frame goes alone");
  slot(0) = {head(coalesced_frame.open, coalesced_frame.opening), coalesced_frame.opening};
  slot(1) = {head(coalesced_frame.data, coalesced_frame.payload), coalesced_frame.payload};
  count_ = 2;
  written_of_first_ = written;
  if (written >= size_of(slot(0))) drop_first();
}

void FrameWriter::drop_first() {
  written_of_first_ -= size_of(slot(0));
  first_ = (first_ + 1) % frames_max;
  --count_;
}

std::span<std::span<std::byte const> const> FrameWriter::gather() {
  std::size_t used = 0;
  if (!rest_.empty()) gathered_[used++] = std::span<std::byte const>(rest_).subspan(written_of_rest_);
  auto skip = written_of_first_;
  auto const put = [&](std::span<std::byte const> bytes) {
    auto const skipped = std::min(skip, bytes.size());
    skip -= skipped;
    if (skipped < bytes.size()) gathered_[used++] = bytes.subspan(skipped);
  };
  for (std::size_t i = 0; i < count_; ++i) {
    put(head_of(slot(i)));
    put(slot(i).payload);
  }
  return std::span(gathered_).first(used);
}

void FrameWriter::wrote(LinkHandler& handler, std::size_t bytes) {
  if (!rest_.empty()) {
    auto const of_rest = std::min(bytes, rest_.size() - written_of_rest_);
    written_of_rest_ += of_rest;
    bytes -= of_rest;
    if (written_of_rest_ < rest_.size()) return;
    rest_.clear();
    written_of_rest_ = 0;
  }
  written_of_first_ += bytes;
  while (count_ != 0 && written_of_first_ >= size_of(slot(0))) {
    auto const header = slot(0).head.header;
    drop_first();
    handler.frame_sent(header);
  }
}

void FrameWriter::keep_rest_of_first() {
  auto const& first = slot(0);
  rest_.clear();
  auto skip = std::exchange(written_of_first_, 0);
  for (auto const& bytes : {head_of(first), first.payload}) {
    auto const skipped = std::min(skip, bytes.size());
    skip -= skipped;
    rest_.insert(rest_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(skipped), bytes.end());
  }
}

void FrameWriter::release(std::uint64_t run) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    auto& old = slot(i);
    if (old.head.header.run == run && is_of_channel(old.head.header.type)) {
      if (i == 0 && written_of_first_ != 0) keep_rest_of_first();
      continue;
    }
    if (kept != i) slot(kept) = old;
    ++kept;
  }
  count_ = kept;
}

}  // namespace chorus::links
