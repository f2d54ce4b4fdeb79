// A ring of frames in memory that the other side wrote, with anything in it: the receiver gives out nothing outside of
// the ring and comes to an end, the sender believes no mark that cannot be.
#include "worker/links/shm/shm_ring.hpp"

#include <vector>

#include "tests/fuzz/input.hpp"

using namespace chorus;
using namespace chorus::links;

namespace {

constexpr std::size_t lines = 128;

void receive(std::span<RingLine> ring) {
  RingTail tail;
  RingReceiver receiver(tail, ring);
  auto const memory = std::as_bytes(ring);
  // Nobody sets a 0 behind the last record, so there may be records without end.
  for (std::size_t i = 0; i < 3 * lines; ++i) {
    FrameHeader frame;
    std::span<std::byte const> payload;
    bool const is_in_ring = receiver.look_in_ring(frame, payload);
    RingReceiver::Record record;
    auto const found = receiver.look(record);
    if (found.has_error()) {
      CHORUS_ASSERT(!found.error().detail.empty(), "what is refused has a reason");
      return;
    }
    if (!*found) return;
    CHORUS_ASSERT(!is_in_ring || (record.head.kind == RecordKind::in_ring && record.head.frame == frame &&
                                  record.in_ring.data() == payload.data() && record.in_ring.size() == payload.size()),
                  "both looks show the same");
    CHORUS_ASSERT(record.in_ring.data() >= memory.data() &&
                      record.in_ring.data() + record.in_ring.size() <= memory.data() + memory.size(),
                  "what a record shows lies in the ring");
    auto const in_ring = record.head.kind == RecordKind::in_ring;
    // As the link does before it goes on.
    if (check(record.head.frame).has_error() || (in_ring && record.head.frame.length > record.in_ring.size())) return;
    if (record.head.kind == RecordKind::reference) CHORUS_ASSERT(receiver.still_stands(), "nobody withdraws it here");
    receiver.advance(record.head.kind, record.head.frame.length);
  }
}

void send(std::span<RingLine> ring, std::uint64_t tail, std::span<std::byte const> payload) {
  RingTail shared_tail;
  RingSender sender(shared_tail, ring);
  FrameHeader frame;
  frame.length = static_cast<std::uint32_t>(std::min(payload.size(), in_ring_bytes_max));
  std::size_t put = 0;
  while (put <= lines && sender.put(frame, payload.first(frame.length))) ++put;
  CHORUS_ASSERT(put > 0 && put < lines, "a ring takes a frame, and not without end");
  // The first frame whose line can be told.
  auto const written = sender.put_reference(frame, 0);
  shared_tail.line.store(tail);
  auto const received = sender.received();
  if (tail > lines) CHORUS_ASSERT(received.has_error(), "a tail beyond the head is no tail");
  if (received.has_value() && written) CHORUS_ASSERT(tail <= *written + 1, "a tail beyond the head is no tail");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto const tail = input.number<std::uint64_t>();
  std::vector<RingLine> ring(lines);
  auto const bytes = input.bytes();
  std::memcpy(ring.data(), bytes.data(), std::min(bytes.size(), lines * sizeof(RingLine)));
  receive(ring);
  send(ring, tail, bytes);
  return 0;
}
