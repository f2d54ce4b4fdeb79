// Frames to bytes and back, whatever carries the bytes and however it cuts them: the half of a link that has no socket.
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

// Whether frames carry checksums: a matter of the whole link, from its first frame on.
enum class Framing : std::uint8_t { plain, checksummed };

// Cuts a byte stream into frames. Payloads are received in place: space() begins with the handler's own memory.
class FrameReader {
 public:
  explicit FrameReader(Framing framing = Framing::plain);

  using Space = std::array<std::span<std::byte>, 2>;  // the second may be empty

  // Where the next bytes of the stream go. Valid until arrived() or another call of the handler.
  [[nodiscard]] Space space(LinkHandler& handler);
  // `bytes` were put there. Errors are the handler's, or LinkErrc::corrupt_frame, of which the handler was told; the
  // stream ends with one. `*closed`, if it becomes true, means that the handler has closed the link meanwhile.
  [[nodiscard]] Status arrived(LinkHandler& handler, std::size_t bytes, bool const& closed);
  // Bytes that came by another way, before the first arrived().
  [[nodiscard]] Status feed(LinkHandler& handler, std::string_view bytes, bool const& closed);

  // In the middle of a frame: an end of the stream here is a cut.
  [[nodiscard]] bool within_frame() const { return payload_left_ != 0 || inbox_end_ != 0; }

 private:
  Status parse(LinkHandler& handler, bool const& closed);
  Status begin_frame(LinkHandler& handler, std::byte const* head);
  [[nodiscard]] std::optional<Parcel> parcel_at(std::size_t at, LinkHandler const& handler) const;
  Status take_payload(LinkHandler& handler, std::span<std::byte const> bytes);
  Status corrupt(LinkHandler& handler, std::string const& what) const;

  Framing const framing_;
  std::size_t const head_bytes_;
  std::unique_ptr<std::byte[]> inbox_;
  std::size_t inbox_end_ = 0;
  std::size_t payload_left_ = 0;   // of the frame at hand
  std::span<std::byte> in_place_;  // of the last space(): what of it was the handler's memory
  FrameHead head_;                 // of the frame at hand, for its checksum
  std::uint32_t payload_crc_ = 0;  // of what has come of its payload
  std::uint64_t frames_ = 0;       // begun
};

// Gathers the frames to write next.
class FrameWriter {
 public:
  static constexpr std::size_t frames_max = 32;
  static constexpr std::size_t gathered_max = 2 * frames_max + 1;

  explicit FrameWriter(Framing framing = Framing::plain) : framing_(framing) {}

  // Pulls from the handler until it has none or frames_max are held. Checksums are taken here.
  void fill(LinkHandler& handler);

  // Lays a parcel's frames one behind the other, and gives how many bytes they are.
  [[nodiscard]] std::size_t lay(Parcel const& parcel, std::span<std::byte, parcel_size_max> to) const;
  // While nothing is held: a parcel of which so many bytes were written, but not all.
  void hold(Parcel const& parcel, std::size_t written);

  // Headers and payloads that are not written, in order; valid until the next call of any other method.
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
  void drop_first();  // it is written
  void keep_rest_of_first();

  Framing const framing_;
  std::array<Slot, frames_max> slots_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t written_of_first_ = 0;  // bytes, header included
  // Goes before the first: of one that was begun, and of which nobody is to be told.
  std::vector<std::byte> rest_;
  std::size_t written_of_rest_ = 0;
  std::array<std::span<std::byte const>, gathered_max> gathered_;
};

}  // namespace chorus::links
