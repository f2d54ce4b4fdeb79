#include "worker/links/frame_stream.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"

namespace chorus::links {
namespace {

constexpr std::size_t header_bytes = sizeof(FrameHeader);
constexpr std::size_t inbox_bytes = 16384;
// Behind a payload of this size only the next header is read ahead, so that the payload after it also goes straight
// into place; behind smaller ones it is cheaper to take many frames in one read and to copy them.
constexpr std::size_t bulk_bytes = 4096;

}  // namespace

FrameReader::FrameReader() : inbox_(std::make_unique_for_overwrite<std::byte[]>(inbox_bytes)) {}

FrameReader::Space FrameReader::space(LinkHandler& handler) {
  in_place_bytes_ = 0;
  if (payload_left_ == 0) return {std::span(inbox_.get() + inbox_end_, inbox_bytes - inbox_end_), {}};
  auto payload = handler.payload_space();
  CHORUS_ASSERT(!payload.empty(), "a payload that is awaited has a place to go");
  payload = payload.first(std::min(payload.size(), payload_left_));
  in_place_bytes_ = payload.size();
  if (payload.size() < payload_left_) return {payload, {}};
  return {payload, std::span(inbox_.get(), payload.size() >= bulk_bytes ? header_bytes : inbox_bytes)};
}

Status FrameReader::arrived(LinkHandler& handler, std::size_t bytes, bool const& closed) {
  auto const in_place = std::min(bytes, in_place_bytes_);
  if (in_place != 0) {
    payload_left_ -= in_place;
    if (auto placed = handler.payload_arrived(in_place); placed.has_error() || closed) return placed;
  }
  inbox_end_ += bytes - in_place;
  in_place_bytes_ = 0;
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
      payload_left_ -= bytes;
      if (auto placed = handler.payload_arrived(bytes); placed.has_error() || closed) return placed;
    } else if (inbox_end_ - at >= header_bytes) {
      FrameHeader header;
      std::memcpy(&header, inbox_.get() + at, header_bytes);
      at += header_bytes;
      if (auto accepted = handler.frame_arrives(header); accepted.has_error() || closed) return accepted;
      payload_left_ = header.length;
    } else {
      break;
    }
  }
  inbox_end_ -= at;
  std::memmove(inbox_.get(), inbox_.get() + at, inbox_end_);
  return ok();
}

void FrameWriter::fill(LinkHandler& handler) {
  while (count_ < frames_max) {
    auto& next = slot(count_);
    next.silent = false;
    if (!handler.next_frame(next.frame)) return;
    ++count_;
  }
}

std::span<std::span<std::byte const> const> FrameWriter::gather() {
  std::size_t used = 0;
  auto skip = written_of_first_;
  auto const put = [&](std::span<std::byte const> bytes) {
    auto const skipped = std::min(skip, bytes.size());
    skip -= skipped;
    if (skipped < bytes.size()) gathered_[used++] = bytes.subspan(skipped);
  };
  for (std::size_t i = 0; i < count_; ++i) {
    put(std::as_bytes(std::span(&slot(i).frame.header, 1)));
    put(slot(i).frame.payload);
  }
  return std::span(gathered_).first(used);
}

void FrameWriter::wrote(LinkHandler& handler, std::size_t bytes) {
  written_of_first_ += bytes;
  while (count_ != 0) {
    auto const& first = slot(0);
    auto const size = header_bytes + first.frame.payload.size();
    if (written_of_first_ < size) break;
    written_of_first_ -= size;
    auto const header = first.frame.header;
    bool const silent = first.silent;
    first_ = (first_ + 1) % frames_max;
    --count_;
    if (!silent) handler.frame_sent(header);
  }
}

void FrameWriter::release(std::uint64_t run) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    auto& old = slot(i);
    auto const type = old.frame.header.type;
    bool const released = old.frame.header.run == run && (type == FrameType::data || type == FrameType::open);
    if (released && !(i == 0 && written_of_first_ != 0)) continue;
    if (released && !old.silent) {
      copied_.assign(old.frame.payload.begin(), old.frame.payload.end());
      old.frame.payload = copied_;
      old.silent = true;
    }
    if (kept != i) slot(kept) = old;
    ++kept;
  }
  count_ = kept;
}

}  // namespace chorus::links
