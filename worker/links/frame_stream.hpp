// Encodes frames to a byte stream and decodes them, independent of the transport and of how it cuts the stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/links/link.hpp"

namespace chorus::links {

// Tells if frames carry checksums. The same for a whole link, from its first frame on.
enum class Framing : std::uint8_t { plain, checksummed };

// Decodes a byte stream. Payloads are received in place: space() begins with the handler's own memory.
class FrameReader {
 public:
  explicit FrameReader(Framing framing = Framing::plain);

  using Space = std::array<std::span<std::byte>, 2>;  // the second may be empty

  // Returns the memory for the next bytes of the stream. Valid until arrived() or another call of the handler.
  [[nodiscard]] Space space(LinkHandler& handler);
  // `bytes` bytes were put into that memory. `closed` becomes true if the handler closes the link meanwhile. Errors,
  // all of which end the stream: the handler's, or LinkErrc::corrupt_frame, of which the handler has been told.
  [[nodiscard]] Status arrived(LinkHandler& handler, std::size_t bytes, bool const& closed);
  // Decodes the first bytes of the stream, which the handshake has read. Called before the first arrived().
  [[nodiscard]] Status feed(LinkHandler& handler, std::string_view bytes, bool const& closed);

  // Returns true in the middle of a frame, where an end of the stream is an error.
  [[nodiscard]] bool within_frame() const { return payload_left_ != 0 || inbox_end_ != 0; }

 private:
  Status parse(LinkHandler& handler, bool const& closed);
  Status begin_frame(LinkHandler& handler, std::byte const* head);
  [[nodiscard]] std::optional<CoalescedFrame> coalesced_frame_at(std::size_t at, LinkHandler const& handler) const;
  Status take_payload(LinkHandler& handler, std::span<std::byte const> bytes);
  Status corrupt(LinkHandler& handler, std::string const& what) const;

  Framing const framing_;
  std::size_t const head_bytes_;
  std::unique_ptr<std::byte[]> inbox_;
  std::size_t inbox_end_ = 0;
  std::size_t payload_left_ = 0;   // bytes of the current frame
  std::span<std::byte> in_place_;  // the handler's memory in the last space()
  FrameHead head_;                 // of the current frame, for its checksum
  std::uint32_t payload_crc_ = 0;  // of the part of its payload that has arrived
  std::uint64_t frames_ = 0;       // number of frames begun
};

// Gathers the frames to write next.
class FrameWriter {
 public:
  static constexpr std::size_t frames_max = 32;
  static constexpr std::size_t gathered_max = 2 * frames_max + 1;

  explicit FrameWriter(Framing framing = Framing::plain) : framing_(framing) {}

  // Pulls frames from the handler until it has none or frames_max are held. Computes checksums.
  void fill(LinkHandler& handler);

  // Writes both frames of a coalesced frame one after the other. Returns the number of bytes.
  [[nodiscard]] std::size_t lay(CoalescedFrame const& coalesced_frame,
                                std::span<std::byte, coalesced_frame_size_max> to) const;
  // Writes a message frame, and returns the number of bytes.
  [[nodiscard]] std::size_t lay(MessageFrame const& message, std::span<std::byte, message_frame_size_max> to) const;
  // Holds a copy of the rest of a frame, for which no frame_sent() follows. Only while the writer is empty.
  void hold(std::span<std::byte const> rest);
  // Holds the rest of a coalesced frame of which `written` bytes were written. Only while the writer is empty.
  void hold(CoalescedFrame const& coalesced_frame, std::size_t written);

  // Returns the unwritten headers and payloads in order; valid until the next call of any other method.
  [[nodiscard]] std::span<std::span<std::byte const> const> gather();
  void wrote(LinkHandler& handler, std::size_t bytes);

  [[nodiscard]] bool empty() const { return count_ == 0 && rest_.empty(); }

  // See Link::release.
  void release(std::uint64_t run);

 private:
  struct Slot {
    FrameHead head;
    std::span<std::byte const> payload;
  };
  [[nodiscard]] Slot& slot(std::size_t i) { return slots_[(first_ + i) % frames_max]; }

  [[nodiscard]] FrameHead head(FrameHeader const& header, std::span<std::byte const> payload) const;
  [[nodiscard]] std::span<std::byte const> head_of(Slot const& of) const;
  [[nodiscard]] std::size_t size_of(Slot const& of) const;
  void drop_first();  // after it was written
  void keep_rest_of_first();

  Framing const framing_;
  std::array<Slot, frames_max> slots_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t written_of_first_ = 0;  // bytes, header included
  // Written before the first slot: the rest of a frame for which frame_sent() is not called.
  std::vector<std::byte> rest_;
  std::size_t written_of_rest_ = 0;
  std::array<std::span<std::byte const>, gathered_max> gathered_;
};

}  // namespace chorus::links
