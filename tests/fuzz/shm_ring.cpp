// A ring of frames in memory that the other side wrote, with anything in it: the receiver gives out nothing outside of
// the ring and comes to an end, the sender believes no mark that cannot be.
#include "worker/links/shm/shm_ring.hpp"

#include <vector>

#include "tests/fuzz/input.hpp"

using namespace chorus;
using namespace chorus::links;

namespace {

constexpr std::size_t lines = 128;

void receive(RingMarks& marks, std::span<RingLine> ring) {
  RingReceiver receiver(marks, ring);
  auto const memory = std::as_bytes(ring);
  // Every record takes a line at least, and no more than a ring full of lines was published.
  for (std::size_t i = 0; i <= lines; ++i) {
    CHORUS_ASSERT(i < lines, "the receiver comes to an end");
    RingReceiver::Record record;
    auto const found = receiver.look(record);
    if (found.has_error()) {
      CHORUS_ASSERT(!found.error().detail.empty(), "what is refused has a reason");
      return;
    }
    if (!*found) return;
    CHORUS_ASSERT(record.in_ring.data() >= memory.data() &&
                      record.in_ring.data() + record.in_ring.size() <= memory.data() + memory.size(),
                  "what a record shows lies in the ring");
    auto const in_ring = record.head.kind == RecordKind::in_ring;
    // As the link does before it goes on.
    if (check(record.head.frame).has_error() || (in_ring && record.head.frame.length > record.in_ring.size())) return;
    if (record.head.kind == RecordKind::reference) CHORUS_ASSERT(receiver.still_stands(), "nobody withdraws it here");
    receiver.advance(record);
  }
}

void send(RingMarks& marks, std::span<RingLine> ring, std::uint64_t tail, std::span<std::byte const> payload) {
  RingSender sender(marks, ring);
  FrameHeader frame;
  frame.length = static_cast<std::uint32_t>(std::min(payload.size(), in_ring_bytes_max));
  std::size_t put = 0;
  while (put <= lines && sender.put(frame, payload.first(frame.length))) ++put;
  CHORUS_ASSERT(put > 0 && put <= lines, "a ring takes a frame, and not without end");
  auto const published = marks.head.load();
  marks.tail.store(tail);
  auto const received = sender.received();
  CHORUS_ASSERT(received.has_value() == (tail <= published), "a tail beyond the head is no tail");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  RingMarks marks;
  marks.head.store(input.number<std::uint64_t>());
  auto const tail = input.number<std::uint64_t>();
  std::vector<RingLine> ring(lines);
  auto const bytes = input.bytes();
  std::memcpy(ring.data(), bytes.data(), std::min(bytes.size(), lines * sizeof(RingLine)));
  receive(marks, ring);
  RingMarks fresh;
  send(fresh, ring, tail, bytes);
  return 0;
}
