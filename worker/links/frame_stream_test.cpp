#include "worker/links/frame_stream.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "worker/links/frames/errc.hpp"

using namespace chorus;
using namespace chorus::links;

namespace {

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
  friend bool operator==(Frame const&, Frame const&) = default;
};

Frame frame_of(std::uint64_t run, std::size_t bytes, FrameType type = FrameType::data) {
  Frame frame;
  frame.header.type = type;
  frame.header.run = run;
  frame.header.length = static_cast<std::uint32_t>(bytes);
  for (std::size_t i = 0; i < bytes; ++i) frame.payload.push_back(static_cast<std::byte>(i * 7 + run));
  return frame;
}

// A handler that provides frames to write and records frames that were read.
class Recorder final : public LinkHandler {
 public:
  std::deque<Frame> to_send;
  std::vector<Frame> sent_of, arrived;
  std::size_t given = 0;
  std::size_t space_max = 100000;
  std::uint64_t refuse_run = 0;
  std::string corruption;
  bool takes_coalesced_frames = false;
  std::vector<std::uint64_t> coalesced_frames;  // their runs

  bool next_frame(OutFrame& frame) override {
    if (given == to_send.size()) return false;
    frame = {to_send[given].header, to_send[given].payload};
    ++given;
    return true;
  }
  void frame_sent(FrameHeader const& header) override { sent_of.push_back({header, {}}); }
  Status frame_arrives(FrameHeader const& header) override {
    if (header.run == refuse_run) return Error(LinkErrc::bad_frame, "not this one");
    arrived.push_back({header, {}});
    return ok();
  }
  [[nodiscard]] bool awaits_coalesced_frame(FrameHeader const&) const override { return takes_coalesced_frames; }
  bool coalesced_frame_arrives(CoalescedFrame const& coalesced_frame) override {
    coalesced_frames.push_back(coalesced_frame.open.run);
    arrived.push_back({coalesced_frame.open, {coalesced_frame.opening.begin(), coalesced_frame.opening.end()}});
    arrived.push_back({coalesced_frame.data, {coalesced_frame.payload.begin(), coalesced_frame.payload.end()}});
    return true;
  }
  void frame_is_corrupt(Error const& why) override { corruption = why.detail; }
  std::span<std::byte> payload_space() override {
    space_.resize(std::min<std::size_t>(space_max, arrived.back().header.length - arrived.back().payload.size()));
    return space_;
  }
  void payload_at(std::span<std::byte const>) override { FAIL("a stream has no payloads in memory"); }
  void payload_withdrawn() override { FAIL("a stream goes on"); }
  Status payload_arrived(std::size_t bytes) override {
    REQUIRE(bytes <= space_.size());
    arrived.back().payload.insert(arrived.back().payload.end(), space_.begin(),
                                  space_.begin() + static_cast<std::ptrdiff_t>(bytes));
    return ok();
  }
  void link_rests() override {}
  void link_closed(Error) override {}

 private:
  std::vector<std::byte> space_;
};

std::deque<Frame> some_frames() {
  return {frame_of(1, 4),     frame_of(2, 0, FrameType::grant),
          frame_of(3, 5000),  frame_of(4, 1),
          frame_of(5, 20000), frame_of(6, 4096),
          frame_of(7, 33)};
}

std::vector<std::byte> bytes_of(std::deque<Frame> const& frames, Framing framing = Framing::plain) {
  std::vector<std::byte> bytes;
  for (auto const& frame : frames) {
    auto const header = std::as_bytes(std::span(&frame.header, 1));
    bytes.insert(bytes.end(), header.begin(), header.end());
    auto const sums = check_of(frame.header, frame.payload);
    auto const check = std::as_bytes(std::span(&sums, 1));
    if (framing == Framing::checksummed) bytes.insert(bytes.end(), check.begin(), check.end());
    bytes.insert(bytes.end(), frame.payload.begin(), frame.payload.end());
  }
  return bytes;
}

// Reads the stream in pieces of `piece` bytes.
Status read(FrameReader& reader, Recorder& recorder, std::span<std::byte const> stream, std::size_t piece) {
  bool const closed = false;
  while (!stream.empty()) {
    std::size_t moved = 0;
    for (auto const& space : reader.space(recorder)) {
      auto const part = stream.first(std::min({stream.size(), space.size(), piece - moved}));
      if (part.empty()) continue;
      std::memcpy(space.data(), part.data(), part.size());
      stream = stream.subspan(part.size());
      moved += part.size();
    }
    if (auto arrived = reader.arrived(recorder, moved, closed); arrived.has_error()) return arrived;
  }
  return ok();
}

// Writes at most `piece` bytes at a time.
std::vector<std::byte> write(FrameWriter& writer, Recorder& recorder, std::size_t piece, std::size_t times = SIZE_MAX) {
  std::vector<std::byte> stream;
  for (; times != 0; --times) {
    writer.fill(recorder);
    if (writer.empty()) break;
    std::size_t moved = 0;
    for (auto const& bytes : writer.gather()) {
      auto const part = bytes.first(std::min(bytes.size(), piece - moved));
      stream.insert(stream.end(), part.begin(), part.end());
      moved += part.size();
    }
    writer.wrote(recorder, moved);
  }
  return stream;
}

}  // namespace

TEST_CASE("frames are the same however the stream is cut, and however little space there is") {
  auto const frames = some_frames();
  for (auto const framing : {Framing::plain, Framing::checksummed})
    for (std::size_t space_max : {100000ul, 1000ul, 7ul}) {
      auto const stream = bytes_of(frames, framing);
      for (std::size_t piece = 1; piece < stream.size(); piece += 1 + piece / 20) {
        FrameReader reader(framing);
        Recorder recorder;
        recorder.space_max = space_max;
        REQUIRE(read(reader, recorder, stream, piece).has_value());
        REQUIRE(std::equal(frames.begin(), frames.end(), recorder.arrived.begin(), recorder.arrived.end()));
        REQUIRE_FALSE(reader.within_frame());
      }
    }
}

TEST_CASE("a stream that ends anywhere but between frames ends within one") {
  std::deque<Frame> const frames{frame_of(1, 40), frame_of(2, 8)};
  auto const stream = bytes_of(frames);
  for (std::size_t size = 1; size < stream.size(); ++size) {
    FrameReader reader;
    Recorder recorder;
    REQUIRE(read(reader, recorder, std::span(stream).first(size), 11).has_value());
    REQUIRE(reader.within_frame() == (size != 72));
  }
}

TEST_CASE("with checksums, every bit that is changed anywhere ends the stream before its frame counts") {
  std::deque<Frame> const frames{frame_of(1, 4), frame_of(2, 0, FrameType::grant), frame_of(3, 70), frame_of(4, 9)};
  auto stream = bytes_of(frames, Framing::checksummed);
  for (std::size_t bit = 0; bit < 8 * stream.size(); ++bit) {
    auto& byte = stream[bit / 8];
    byte ^= std::byte{1} << bit % 8;
    FrameReader reader(Framing::checksummed);
    Recorder recorder;
    recorder.space_max = 33;
    auto const end = read(reader, recorder, stream, 50);
    byte ^= std::byte{1} << bit % 8;
    REQUIRE(end.has_error());
    REQUIRE(end.error().code == LinkErrc::corrupt_frame);
    REQUIRE(recorder.corruption == end.error().detail);
    for (std::size_t i = 0; i + 1 < recorder.arrived.size(); ++i) REQUIRE(recorder.arrived[i] == frames[i]);
    auto const& last = recorder.arrived.empty() ? Frame() : recorder.arrived.back();
    REQUIRE((recorder.arrived.empty() || last == frames[recorder.arrived.size() - 1] ||
             last.payload.size() < last.header.length));
  }
}

TEST_CASE("the error names the frame that was changed") {
  auto const frames = some_frames();
  auto stream = bytes_of(frames, Framing::checksummed);
  stream[40 + 4 + 40 + 40 + 17] ^= std::byte{1};
  FrameReader reader(Framing::checksummed);
  Recorder recorder;
  CHECK(read(reader, recorder, stream, 1000).error().detail ==
        "frame 3 of the link was changed on the way: data of run 3, 5000 bytes of message 0 at byte 0");
}

TEST_CASE("bytes that the handshake has read come first") {
  auto const frames = some_frames();
  auto const stream = bytes_of(frames);
  for (std::size_t early : {1ul, 31ul, 32ul, 33ul, 3000ul, stream.size()}) {
    FrameReader reader;
    Recorder recorder;
    std::string_view const text(reinterpret_cast<char const*>(stream.data()), early);
    REQUIRE(reader.feed(recorder, text, false).has_value());
    REQUIRE(read(reader, recorder, std::span(stream).subspan(early), 999).has_value());
    REQUIRE(std::equal(frames.begin(), frames.end(), recorder.arrived.begin(), recorder.arrived.end()));
  }
}

TEST_CASE("reading stops at the frame that the handler refuses") {
  auto const stream = bytes_of(some_frames());
  FrameReader reader;
  Recorder recorder;
  recorder.refuse_run = 4;
  CHECK(read(reader, recorder, stream, 10000).error().detail == "not this one");
  CHECK(recorder.arrived.size() == 3);
}

TEST_CASE("frames are written in order, whole, however little is taken at a time") {
  auto const frames = some_frames();
  for (auto const framing : {Framing::plain, Framing::checksummed}) {
    auto const stream = bytes_of(frames, framing);
    for (std::size_t piece = 1; piece < stream.size(); piece += 1 + piece / 10) {
      FrameWriter writer(framing);
      Recorder recorder;
      recorder.to_send = frames;
      REQUIRE(write(writer, recorder, piece) == stream);
      REQUIRE(recorder.sent_of.size() == frames.size());
    }
  }
}

TEST_CASE("more frames than a batch holds are pulled as others leave") {
  FrameWriter writer;
  Recorder recorder;
  for (std::uint64_t i = 0; i < 3 * FrameWriter::frames_max + 1; ++i) recorder.to_send.push_back(frame_of(i, 8));
  auto const expected = bytes_of(recorder.to_send);
  CHECK(write(writer, recorder, 100) == expected);
}

TEST_CASE("a released run's frames are dropped, except for the rest of one that is half written") {
  std::deque<Frame> const frames{frame_of(1, 100), frame_of(1, 50), frame_of(2, 60), frame_of(1, 70),
                                 frame_of(1, 16, FrameType::abort)};
  for (std::size_t written = 0; written < 132; ++written) {
    FrameWriter writer;
    Recorder recorder;
    recorder.to_send = frames;
    auto stream = write(writer, recorder, std::max<std::size_t>(written, 1), written == 0 ? 0 : 1);
    if (written == 0) writer.fill(recorder);
    writer.release(1);
    // The run's memory changes; the memory of its control frame does not.
    for (std::size_t i : {0u, 1u, 3u})
      std::fill(recorder.to_send[i].payload.begin(), recorder.to_send[i].payload.end(), std::byte{0xee});
    auto const rest = write(writer, recorder, 13);
    stream.insert(stream.end(), rest.begin(), rest.end());
    std::deque<Frame> expected{frames[2], frames[4]};
    if (written != 0) expected.push_front(frames[0]);
    REQUIRE(stream == bytes_of(expected));
    REQUIRE(recorder.sent_of.size() == 2);  // not called for released frames
  }
}

TEST_CASE("an open and its data arrive together if both have arrived whole, and one by one if not") {
  std::deque<Frame> const frames{frame_of(1, 4),
                                 frame_of(2, 60, FrameType::open),
                                 frame_of(2, 12),
                                 frame_of(3, 48, FrameType::open),
                                 frame_of(4, 49, FrameType::open),
                                 frame_of(4, coalesced_frame_bytes_max),
                                 frame_of(5, 50, FrameType::open),
                                 frame_of(5, coalesced_frame_bytes_max + 1)};
  for (auto const framing : {Framing::plain, Framing::checksummed})
    for (bool const takes : {false, true}) {
      auto const stream = bytes_of(frames, framing);
      for (std::size_t piece = 1; piece <= stream.size(); piece += 1 + piece / 10) {
        FrameReader reader(framing);
        Recorder recorder;
        recorder.takes_coalesced_frames = takes;
        REQUIRE(read(reader, recorder, stream, piece).has_value());
        REQUIRE(std::equal(frames.begin(), frames.end(), recorder.arrived.begin(), recorder.arrived.end()));
        if (piece == 1 || !takes) REQUIRE(recorder.coalesced_frames.empty());
        if (piece > 10000 && takes) REQUIRE(recorder.coalesced_frames == std::vector<std::uint64_t>{2, 4});
      }
    }
}

TEST_CASE("with checksums, a coalesced frame that was changed does not arrive together") {
  std::deque<Frame> const frames{frame_of(1, 48, FrameType::open), frame_of(1, 9)};
  auto stream = bytes_of(frames, Framing::checksummed);
  for (std::size_t bit = 0; bit < 8 * stream.size(); ++bit) {
    auto& byte = stream[bit / 8];
    byte ^= std::byte{1} << bit % 8;
    FrameReader reader(Framing::checksummed);
    Recorder recorder;
    recorder.takes_coalesced_frames = true;
    auto const end = read(reader, recorder, stream, stream.size());
    byte ^= std::byte{1} << bit % 8;
    REQUIRE(end.has_error());
    REQUIRE(end.error().code == LinkErrc::corrupt_frame);
    REQUIRE(recorder.coalesced_frames.empty());
  }
}

TEST_CASE("a coalesced frame has the bytes of its two frames, and an unwritten rest is written like frames") {
  auto const open = frame_of(1, 60, FrameType::open), data = frame_of(1, 12), next = frame_of(2, 30);
  for (auto const framing : {Framing::plain, Framing::checksummed}) {
    auto const expected = bytes_of({open, data}, framing);
    auto const open_bytes = bytes_of({open}, framing).size();
    CoalescedFrame const coalesced_frame{open.header, open.payload, data.header, data.payload};
    for (std::size_t written = 1; written < expected.size(); ++written) {
      FrameWriter writer(framing);
      std::array<std::byte, coalesced_frame_size_max> space;
      REQUIRE(writer.lay(coalesced_frame, space) == expected.size());
      REQUIRE(std::equal(expected.begin(), expected.end(), space.begin()));
      writer.hold(coalesced_frame, written);
      Recorder recorder;
      recorder.to_send = {next};
      auto const stream = write(writer, recorder, 7);
      auto all = std::vector(expected.begin() + static_cast<std::ptrdiff_t>(written), expected.end());
      auto const behind = bytes_of({next}, framing);
      all.insert(all.end(), behind.begin(), behind.end());
      REQUIRE(stream == all);
      std::vector<FrameHeader> told;
      for (auto const& frame : recorder.sent_of) told.push_back(frame.header);
      std::vector wanted{open.header, data.header, next.header};
      if (written >= open_bytes) wanted.erase(wanted.begin());
      REQUIRE(told == wanted);
    }
  }
}

TEST_CASE(
    "a small message has the bytes of a frame, and an unwritten rest is written before all others and not reported") {
  auto const frame = frame_of(1, 60, FrameType::message), next = frame_of(2, 30);
  for (auto const framing : {Framing::plain, Framing::checksummed}) {
    auto const expected = bytes_of({frame}, framing);
    MessageFrame message{frame.header, {}, std::span(frame.payload).subspan(sizeof(MessageHead))};
    std::memcpy(&message.head, frame.payload.data(), sizeof message.head);
    for (std::size_t written = 1; written < expected.size(); ++written) {
      FrameWriter writer(framing);
      std::array<std::byte, message_frame_size_max> space;
      REQUIRE(writer.lay(message, space) == expected.size());
      REQUIRE(std::equal(expected.begin(), expected.end(), space.begin()));
      writer.hold(std::span<std::byte const>(space).first(expected.size()).subspan(written));
      CHECK_FALSE(writer.empty());
      Recorder recorder;
      recorder.to_send = {next};
      auto all = std::vector(expected.begin() + static_cast<std::ptrdiff_t>(written), expected.end());
      auto const behind = bytes_of({next}, framing);
      all.insert(all.end(), behind.begin(), behind.end());
      REQUIRE(write(writer, recorder, 7) == all);
      REQUIRE(recorder.sent_of.size() == 1);
      REQUIRE(recorder.sent_of[0].header == next.header);
    }
  }
}

TEST_CASE("when the run of a coalesced frame is released only the frame that was begun is written") {
  auto const open = frame_of(1, 60, FrameType::open), data = frame_of(1, 12);
  auto const expected = bytes_of({open, data});
  auto const open_bytes = bytes_of({open}).size();
  for (std::size_t written = 1; written < expected.size(); ++written) {
    FrameWriter writer;
    writer.hold({open.header, open.payload, data.header, data.payload}, written);
    writer.release(1);
    Recorder recorder;
    auto const end = written <= open_bytes ? open_bytes : expected.size();
    REQUIRE(write(writer, recorder, 7) == std::vector(expected.begin() + static_cast<std::ptrdiff_t>(written),
                                                      expected.begin() + static_cast<std::ptrdiff_t>(end)));
    REQUIRE(recorder.sent_of.empty());
  }
}
