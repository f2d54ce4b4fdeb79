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
static_assert(offsetof(RecordHead, kind) + sizeof(std::uint64_t) == record_head_bytes,
              "the word with the kind is the last");

constexpr std::size_t lines_of(std::size_t payload_bytes) {
  return (record_head_bytes + payload_bytes + line_bytes - 1) / line_bytes;
}

constexpr std::size_t record_words = record_head_bytes / sizeof(std::uint64_t);
constexpr std::size_t header_words = sizeof(FrameHeader) / sizeof(std::uint64_t);

// The first words, by atomic loads, so that no word is read twice.
template <std::size_t n>
std::array<std::uint64_t, n> words_of(RingLine& line) {
  std::array<std::uint64_t, n> words{};
  for (std::size_t i = 0; i < n; ++i) words[i] = std::atomic_ref(line.words[i]).load(std::memory_order_relaxed);
  return words;
}

std::atomic_ref<std::uint64_t> kind_of(RingLine& line) { return std::atomic_ref(line.words[kind_word]); }

Error bad_record(std::string why) { return {LinkErrc::bad_frame, std::move(why)}; }

}  // namespace

RingSender::RingSender(RingTail& tail, std::span<RingLine> ring) : shared_tail_(tail), ring_(ring) {
  CHORUS_ASSERT(std::has_single_bit(ring.size()) && ring.size() > 2 * lines_of(in_ring_bytes_max),
                "whatever is put fits, also where the ring begins anew");
}

Result<std::uint64_t> RingSender::received() {
  auto const tail = shared_tail_.line.load(std::memory_order_acquire);
  if (tail - tail_ > head_ - tail_)
    return bad_record("the ring's tail is at line " + std::to_string(tail) + ", between " + std::to_string(tail_) +
                      " and " + std::to_string(head_) + " was expected");
  tail_ = tail;
  return tail;
}

// A line behind the frame is free as well, for the 0 that ends what can be read.
std::optional<std::uint64_t> RingSender::reserve(std::size_t lines) {
  auto const to_end = ring_.size() - index_of(head_);
  auto const skipped = lines <= to_end ? 0 : to_end;
  if (!has_room(skipped + lines)) return std::nullopt;
  if (skipped != 0) {
    RecordHead filler;
    filler.kind = RecordKind::filler;
    publish(filler, skipped);
  }
  return head_;
}

std::byte* RingSender::body_of(std::uint64_t place) const {
  return reinterpret_cast<std::byte*>(ring_[index_of(place)].words.data()) + record_head_bytes;
}

void RingSender::end_with(std::uint64_t place) {
  if (end_ == place) return;
  end_ = place;
  kind_of(ring_[index_of(place)]).store(0, std::memory_order_relaxed);
}

void RingSender::publish(RecordHead const& head, std::size_t lines) {
  end_with(head_ + lines);
  auto& first = ring_[index_of(head_)];
  auto const words = std::bit_cast<std::array<std::uint64_t, kind_word + 1>>(head);
  std::copy_n(words.begin(), kind_word, first.words.begin());
  kind_of(first).store(words[kind_word], std::memory_order_release);
  head_ += lines;
  // The receiver's core has that line, and the next frame, if it is as long as this one, need not wait for it.
  if (head.kind != RecordKind::filler && has_room(lines)) end_with(head_ + lines);
}

bool RingSender::put(FrameHeader const& frame, std::span<std::byte const> payload) {
  auto const lines = lines_of(payload.size());
  auto const place = reserve(lines);
  if (!place) return false;
  std::copy(payload.begin(), payload.end(), body_of(*place));
  publish({frame, 0, RecordKind::in_ring}, lines);
  return true;
}

bool RingSender::put(FrameHeader const& frame, MessageHead const& head, std::span<std::byte const> content) {
  auto const lines = lines_of(sizeof head + content.size());
  auto const place = reserve(lines);
  if (!place) return false;
  auto* const body = body_of(*place);
  std::memcpy(body, &head, sizeof head);
  std::copy(content.begin(), content.end(), body + sizeof head);
  publish({frame, 0, RecordKind::in_ring}, lines);
  return true;
}

std::optional<std::uint64_t> RingSender::put_reference(FrameHeader const& frame, std::uint64_t reference) {
  auto const place = reserve(1);
  if (!place) return std::nullopt;
  publish({frame, reference, RecordKind::reference}, 1);
  return place;
}

void RingSender::withdraw(std::uint64_t place) {
  kind_of(ring_[index_of(place)]).store(static_cast<std::uint64_t>(RecordKind::withdrawn), std::memory_order_relaxed);
  // Ordered before later writes to the withdrawn memory.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool RingReceiver::is_empty() const { return kind_of(line()).load(std::memory_order_acquire) == 0; }

std::span<std::byte const> RingReceiver::body() const {
  return std::as_bytes(ring_.subspan(index_of(tail_))).subspan(record_head_bytes);
}

void RingReceiver::pass_filler() {
  tail_ += ring_.size() - index_of(tail_);
  shared_tail_.line.store(tail_, std::memory_order_release);
}

Result<bool> RingReceiver::look(Record& record) {
  while (true) {
    if (is_empty()) return false;
    record.head = std::bit_cast<RecordHead>(words_of<record_words>(line()));
    // `zero` shares a word with the kind: still_stands() would take any other value for a withdrawal, and the abort
    // that follows a withdrawal would never come.
    if (record.head.zero != 0)
      return bad_record("a record with " + std::to_string(record.head.zero) + " where 0 belongs");
    switch (record.head.kind) {
      case RecordKind::in_ring:
      case RecordKind::reference:
      case RecordKind::withdrawn:
        record.in_ring = body();
        return true;
      case RecordKind::filler:
        if (index_of(tail_) == 0) return bad_record("a filler at the ring's begin");
        pass_filler();
        continue;
    }
    return bad_record("a record of kind " + std::to_string(static_cast<std::uint32_t>(record.head.kind)));
  }
}

bool RingReceiver::look_in_ring(FrameHeader& frame, std::span<std::byte const>& in_ring) {
  constexpr auto wanted = static_cast<std::uint64_t>(RecordKind::in_ring);
  constexpr auto filler = static_cast<std::uint64_t>(RecordKind::filler);
  auto word = kind_of(line()).load(std::memory_order_acquire);
  if (word == filler && index_of(tail_) != 0) {
    pass_filler();
    word = kind_of(line()).load(std::memory_order_acquire);
  }
  if (word != wanted) return false;
  frame = std::bit_cast<FrameHeader>(words_of<header_words>(line()));
  in_ring = body();
  return true;
}

bool RingReceiver::still_stands() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return kind_of(line()).load(std::memory_order_relaxed) == static_cast<std::uint64_t>(RecordKind::reference);
}

bool RingReceiver::advance(RecordKind kind, std::uint32_t length) {
  tail_ += kind == RecordKind::in_ring ? lines_of(length) : 1;
  shared_tail_.line.store(tail_, std::memory_order_release);
  if (tail_ - told_ < ring_.size() / 4) return false;
  told_ = tail_;
  return true;
}

}  // namespace chorus::links
