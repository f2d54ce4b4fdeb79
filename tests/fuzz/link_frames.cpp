// The bytes of a link, as a peer may send them: cut into frames in the same way however they arrive, no payload placed
// outside of its frame, every control frame that is accepted is written and read back as it was, and with checksums
// only whole frames that fit theirs.
#include <vector>

#include "tests/fuzz/input.hpp"
#include "worker/links/frame_stream.hpp"
#include "worker/links/frames/inquiry.hpp"

using namespace chorus;
using namespace chorus::links;

namespace {

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
  friend bool operator==(Frame const&, Frame const&) = default;
};

// Takes what check() allows, and gives the payloads as much space at once as it is told to.
class Reader final : public LinkHandler {
 public:
  explicit Reader(std::size_t space_bytes) : space_bytes_(space_bytes) {}

  bool next_frame(OutFrame&) override { return false; }
  void frame_sent(FrameHeader const&) override {}
  Status frame_arrives(FrameHeader const& header) override {
    CHORUS_ASSERT(left_bytes() == 0, "a frame begins where the one before it ends");
    if (auto const checked = check(header); checked.has_error()) return checked;
    frames.push_back({header, {}});
    return ok();
  }
  // Some are taken, which changes nothing of what has come in the end.
  [[nodiscard]] bool awaits_coalesced_frame(FrameHeader const& open) const override { return open.run % 2 == 1; }
  bool coalesced_frame_arrives(CoalescedFrame const& coalesced_frame) override {
    CHORUS_ASSERT(left_bytes() == 0, "a coalesced frame begins where the frame before it ends");
    CHORUS_ASSERT(coalesced_frame.opening.size() == coalesced_frame.open.length &&
                      coalesced_frame.payload.size() == coalesced_frame.data.length,
                  "a coalesced frame is there as a whole");
    CHORUS_ASSERT(coalesced_frame.open.run % 2 == 1, "the others are not awaited");
    if (check(coalesced_frame.open).has_error() || check(coalesced_frame.data).has_error()) return false;
    frames.push_back({coalesced_frame.open, {coalesced_frame.opening.begin(), coalesced_frame.opening.end()}});
    frames.push_back({coalesced_frame.data, {coalesced_frame.payload.begin(), coalesced_frame.payload.end()}});
    return true;
  }
  // How much of it had come before that was seen is a matter of the pieces.
  void frame_is_corrupt(Error const&) override {
    if (left_bytes() > 0) frames.pop_back();
  }
  std::span<std::byte> payload_space() override {
    CHORUS_ASSERT(left_bytes() > 0, "space is asked for a payload only");
    space_.resize(std::min(space_bytes_, left_bytes()));
    return space_;
  }
  Status payload_arrived(std::size_t bytes) override {
    CHORUS_ASSERT(bytes <= space_.size() && bytes <= left_bytes(), "no more arrives than there was space for");
    auto& payload = frames.back().payload;
    payload.insert(payload.end(), space_.begin(), space_.begin() + static_cast<std::ptrdiff_t>(bytes));
    return ok();
  }
  void payload_at(std::span<std::byte const>) override { CHORUS_ASSERT(false, "a stream has no memory to show"); }
  void payload_withdrawn() override { CHORUS_ASSERT(false, "a stream takes nothing back"); }
  void link_rests() override {}
  void link_closed(Error) override {}

  std::vector<Frame> frames;

 private:
  [[nodiscard]] std::size_t left_bytes() const {
    return frames.empty() ? 0 : frames.back().header.length - frames.back().payload.size();
  }

  std::size_t space_bytes_;
  std::vector<std::byte> space_;
};

struct Outcome {
  std::vector<Frame> frames;
  std::string error;
  bool within_frame = false;
  friend bool operator==(Outcome const&, Outcome const&) = default;
};

Outcome fed(std::string_view stream, Framing framing) {
  Reader handler(64);
  FrameReader reader(framing);
  bool const closed = false;
  auto const read = reader.feed(handler, stream, closed);
  auto error = read.has_error() ? read.error().detail : "";
  return {std::move(handler.frames), std::move(error), read.has_value() && reader.within_frame()};
}

// As a socket delivers it: into the spaces, `piece_bytes` at most at a time.
Outcome received(std::span<std::byte const> stream, std::size_t piece_bytes, Framing framing) {
  Reader handler(piece_bytes);
  FrameReader reader(framing);
  bool const closed = false;
  while (!stream.empty()) {
    std::size_t filled = 0;
    for (auto const space : reader.space(handler)) {
      auto const bytes = std::min({space.size(), stream.size(), piece_bytes - filled});
      std::copy_n(stream.begin(), bytes, space.begin());
      stream = stream.subspan(bytes);
      filled += bytes;
      if (bytes < space.size()) break;
    }
    CHORUS_ASSERT(filled > 0, "a stream that goes on has space");
    if (auto const read = reader.arrived(handler, filled, closed); read.has_error())
      return {std::move(handler.frames), read.error().detail, false};
  }
  return {std::move(handler.frames), "", reader.within_frame()};
}

std::span<std::byte const> first(std::span<std::byte const> bytes, std::size_t count) { return bytes.first(count); }

void check_payload(Frame const& frame) {
  std::span<std::byte const> const payload(frame.payload);
  switch (frame.header.type) {
    case FrameType::open:
      if (auto const open = decode_open(payload, frame.header.flags == lends_flag); open.has_value()) {
        OpenBytes bytes;
        auto used = encode(open->open, open->description(), bytes);
        if (open->lend) used = append(*open->lend, used, bytes);
        auto const again = decode_open(first(bytes, used), open->lend.has_value());
        CHORUS_ASSERT(again.has_value() && again->open == open->open && again->description() == open->description() &&
                          again->lend == open->lend,
                      "an open is written and read back");
      }
      return;
    case FrameType::abort:
    case FrameType::refuse:
      if (auto const failure_notice = decode_failure_notice(payload); failure_notice.has_value()) {
        FailureNoticeBytes bytes;
        auto const again = decode_failure_notice(first(bytes, encode(*failure_notice, bytes)));
        CHORUS_ASSERT(again.has_value() && *again == *failure_notice, "a failure notice is written and read back");
      }
      return;
    case FrameType::ask:
      CHORUS_ASSERT(decode_ask(payload).has_value(), "an ask is a token");
      return;
    case FrameType::tell:
      if (auto const tell = decode_tell(payload); tell.has_value()) {
        std::array<std::byte, tell_bytes_max> bytes;
        auto const again = decode_tell(first(bytes, encode(*tell, bytes)));
        CHORUS_ASSERT(again.has_value() && *again == *tell, "a tell is written and read back");
      }
      return;
    case FrameType::borrow:
      if (auto const borrow = decode_borrow(payload); borrow.has_value()) {
        std::array<std::byte, borrow_bytes_max> bytes;
        auto const again = decode_borrow(first(bytes, encode(*borrow, bytes)));
        CHORUS_ASSERT(again.has_value() && *again == *borrow, "a borrow is written and read back");
      }
      return;
    case FrameType::lies:
      CHORUS_ASSERT(decode_place(payload).has_value(), "a place is two numbers");
      return;
    default:
      return;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto const how = input.number<std::uint16_t>();
  auto const piece_bytes = std::size_t{1} + how % 8192;
  auto const framing = how >= 0x8000 ? Framing::checksummed : Framing::plain;
  auto const whole = fed(input.text(), framing);
  CHORUS_ASSERT(received(input.bytes(), piece_bytes, framing) == whole, "how the bytes arrive does not matter");
  for (auto const& frame : whole.frames)
    if (frame.payload.size() == frame.header.length) check_payload(frame);
  return 0;
}
