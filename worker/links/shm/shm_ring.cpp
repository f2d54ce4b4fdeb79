#include "worker/links/shm/shm_ring.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "collectives/core/assert.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::links {
namespace {

constexpr std::size_t line_bytes = sizeof(RingLine);
constexpr std::size_t kind_word = offsetof(RecordHead, kind) / sizeof(std::uint64_t);

constexpr std::size_t lines_of(std::size_t payload_bytes) {
  return (record_head_bytes + payload_bytes + line_bytes - 1) / line_bytes;
}

// Copies word by word with atomic loads, so that no word is read twice.
RecordHead copy_of(RingLine& line) {
  std::array<std::uint64_t, record_head_bytes / sizeof(std::uint64_t)> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = std::atomic_ref(line.words[i]).load(std::memory_order_relaxed);
  return std::bit_cast<RecordHead>(words);
}

Error bad_record(std::string why) { return {LinkErrc::bad_frame, std::move(why)}; }

}  // namespace

RingSender::RingSender(RingMarks& marks, std::span<RingLine> ring) : marks_(marks), ring_(ring) {
  CHORUS_ASSERT(std::has_single_bit(ring.size()) && ring.size() >= 2 * lines_of(in_ring_bytes_max),
                "whatever is put fits, also where the ring begins anew");
}

Result<std::uint64_t> RingSender::received() {
  auto const tail = marks_.tail.load(std::memory_order_acquire);
  if (tail - tail_ > head_ - tail_)
    return bad_record("the ring's tail is at line " + std::to_string(tail) + ", between " + std::to_string(tail_) +
                      " and " + std::to_string(head_) + " was expected");
  tail_ = tail;
  return tail;
}

std::optional<std::uint64_t> RingSender::reserve(std::size_t lines) {
  auto const free = ring_.size() - (head_ - tail_);
  auto const to_end = ring_.size() - index_of(head_);
  auto const skipped = lines <= to_end ? 0 : to_end;
  if (skipped + lines > free) return std::nullopt;
  if (skipped != 0) {
    RecordHead filler;
    filler.kind = RecordKind::filler;
    write(head_, filler);
    head_ += skipped;
  }
  return head_;
}

void RingSender::write(std::uint64_t place, RecordHead const& head) {
  std::memcpy(ring_[index_of(place)].words.data(), &head, sizeof head);
}

std::byte* RingSender::body_of(std::uint64_t place) const {
  return reinterpret_cast<std::byte*>(ring_[index_of(place)].words.data()) + record_head_bytes;
}

void RingSender::publish(std::size_t lines) {
  head_ += lines;
  marks_.head.store(head_, std::memory_order_release);
}

bool RingSender::put(FrameHeader const& frame, std::span<std::byte const> payload) {
  auto const lines = lines_of(payload.size());
  auto const place = reserve(lines);
  if (!place) return false;
  write(*place, {frame, 0, RecordKind::in_ring});
  std::copy(payload.begin(), payload.end(), body_of(*place));
  publish(lines);
  return true;
}

bool RingSender::put(FrameHeader const& frame, MessageHead const& head, std::span<std::byte const> content) {
  auto const lines = lines_of(sizeof head + content.size());
  auto const place = reserve(lines);
  if (!place) return false;
  write(*place, {frame, 0, RecordKind::in_ring});
  auto* const body = body_of(*place);
  std::memcpy(body, &head, sizeof head);
  std::copy(content.begin(), content.end(), body + sizeof head);
  publish(lines);
  return true;
}

std::optional<std::uint64_t> RingSender::put_reference(FrameHeader const& frame, std::uint64_t reference) {
  auto const place = reserve(1);
  if (!place) return std::nullopt;
  write(*place, {frame, reference, RecordKind::reference});
  publish(1);
  return place;
}

void RingSender::withdraw(std::uint64_t place) {
  std::atomic_ref(ring_[index_of(place)].words[kind_word])
      .store(static_cast<std::uint64_t>(RecordKind::withdrawn), std::memory_order_relaxed);
  // Ordered before later writes to the withdrawn memory.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

Result<bool> RingReceiver::look(Record& record) {
  while (true) {
    auto const head = marks_.head.load(std::memory_order_acquire);
    auto const published = head - tail_;
    if (published == 0) return false;
    if (published > ring_.size())
      return bad_record("the ring's head is at line " + std::to_string(head) + ", its tail at line " +
                        std::to_string(tail_));
    auto const at = index_of(tail_);
    auto const contiguous = std::min<std::uint64_t>(published, ring_.size() - at);
    record.head = copy_of(ring_[at]);
    record.in_ring = std::as_bytes(ring_.subspan(at, contiguous)).subspan(record_head_bytes);
    // `zero` shares a word with the kind: still_stands() would take any other value for a withdrawal, and the abort
    // that follows a withdrawal would never come.
    if (record.head.zero != 0)
      return bad_record("a record with " + std::to_string(record.head.zero) + " where 0 belongs");
    switch (record.head.kind) {
      case RecordKind::in_ring:
      case RecordKind::reference:
      case RecordKind::withdrawn:
        return true;
      case RecordKind::filler:
        if (at + contiguous != ring_.size()) return bad_record("a filler within the ring");
        tail_ += contiguous;
        marks_.tail.store(tail_, std::memory_order_release);
        continue;
    }
    return bad_record("a record of kind " + std::to_string(static_cast<std::uint32_t>(record.head.kind)));
  }
}

bool RingReceiver::still_stands() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  auto const word = std::atomic_ref(ring_[index_of(tail_)].words[kind_word]).load(std::memory_order_relaxed);
  return word == static_cast<std::uint64_t>(RecordKind::reference);
}

void RingReceiver::advance(Record const& record) {
  tail_ += record.head.kind == RecordKind::in_ring ? lines_of(record.head.frame.length) : 1;
  marks_.tail.store(tail_, std::memory_order_release);
}

}  // namespace chorus::links
