// Server-sent events: how the stream was cut does not matter.
#include "server/cli/connection/event_stream.hpp"

#include "tests/fuzz/input.hpp"

using chorus::cli::EventStream;
using chorus::cli::SentEvent;

namespace {

std::vector<SentEvent> read(std::string_view bytes, std::size_t piece_bytes) {
  EventStream stream;
  std::vector<SentEvent> events;
  while (!bytes.empty()) {
    auto const piece = bytes.substr(0, piece_bytes);
    for (auto& event : stream.feed(piece)) events.push_back(std::move(event));
    bytes.remove_prefix(piece.size());
  }
  return events;
}

bool same(SentEvent const& a, SentEvent const& b) { return a.id == b.id && a.type == b.type && a.data == b.data; }

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  chorus::fuzz::Input input(data, size);
  auto const piece_bytes = std::size_t{1} + input.byte() % 31;
  auto const whole = read(input.text(), std::string_view::npos);
  auto const cut = read(input.text(), piece_bytes);
  CHORUS_ASSERT(std::equal(whole.begin(), whole.end(), cut.begin(), cut.end(), same), "cuts do not matter");
  for (auto const& event : whole) CHORUS_ASSERT(!event.type.empty(), "an event has a type");
  return 0;
}
