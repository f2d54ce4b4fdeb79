// The frames of a data link, as they lie on the wire: little-endian, 32 bytes of header, 8 bytes of checksums on links
// that have agreed on them, then `length` bytes of payload. The page docs/wire.md has the rules and a worked example.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/links/lending.hpp"

namespace chorus::links {

static_assert(std::endian::native == std::endian::little, "frames are read and written as they lie in memory");

enum class FrameType : std::uint8_t {
  open = 1,  // sender -> receiver: a run begins on this link; payload Open and a description
  grant,     // receiver -> sender: `message` may be sent up to byte `offset`
  data,      // sender -> receiver: `length` bytes of `message` at byte `offset`
  abort,     // either way: the run has failed; payload Verdict
  refuse,    // receiver -> sender: this open is not accepted; payload Verdict. run 0: the whole link is not
  ask,       // either way: what do you do in this run? payload Ask (inquiry.hpp)
  tell,      // either way: the answer; payload Tell
  borrow,    // receiver -> sender: how it takes messages that lie in memory which the open lends; payload Borrow
  lies,      // sender -> receiver: where in that memory `message` goes on, from byte `offset`; payload Place
  read,      // receiver -> sender: `message` was read up to byte `offset`: up to there it may be overwritten
  returned,  // receiver -> sender: nothing reads or writes that memory for this run any more
  room,      // receiver -> sender: where in its own memory the sender's GPU is to write `message` on; payload Place
  wrote,     // sender -> receiver: `message` was written there up to byte `offset`
};

// An open's payload ends with a Lend (lending.hpp).
inline constexpr std::uint8_t lends_flag = 1;
// On a connection for messages either way (two_way.hpp): of the link whose messages its acceptor sends. Both of that
// link's ends set it in all frames; above that nobody sees it.
inline constexpr std::uint8_t back_flag = 0x80;

// Frames of a run's messages, whose payload lies in the run's memory.
[[nodiscard]] constexpr bool is_of_channel(FrameType type) {
  return type == FrameType::data || type == FrameType::open || type == FrameType::lies || type == FrameType::wrote;
}

inline constexpr std::uint16_t frame_magic = 0x4c43;  // "CL" on the wire

struct FrameHeader {
  std::uint16_t magic = frame_magic;
  FrameType type = FrameType::data;
  std::uint8_t flags = 0;   // back_flag or not; of an open, lends_flag or not; otherwise zero
  std::uint32_t epoch = 0;  // of the run
  std::uint64_t run = 0;
  // Of grant, data, lies, read, room and wrote: the n-th message of the run in this link's direction, from 0; otherwise
  // 0.
  std::uint32_t message = 0;
  std::uint32_t length = 0;  // bytes of payload that follow
  std::uint64_t offset = 0;  // of the same frames: in bytes; otherwise 0

  friend bool operator==(FrameHeader const&, FrameHeader const&) = default;
};
static_assert(sizeof(FrameHeader) == 32 && alignof(FrameHeader) == 8);
static_assert(offsetof(FrameHeader, type) == 2 && offsetof(FrameHeader, flags) == 3);
static_assert(offsetof(FrameHeader, epoch) == 4 && offsetof(FrameHeader, run) == 8);
static_assert(offsetof(FrameHeader, message) == 16 && offsetof(FrameHeader, length) == 20);
static_assert(offsetof(FrameHeader, offset) == 24);
static_assert(std::is_trivially_copyable_v<FrameHeader> && std::has_unique_object_representations_v<FrameHeader>);

// What follows the header on links with checksums: both are CRC32C.
struct FrameCheck {
  std::uint32_t payload = 0;  // of its bytes; 0 where there are none
  std::uint32_t header = 0;   // of the header's 32 bytes and the 4 of `payload`

  friend bool operator==(FrameCheck const&, FrameCheck const&) = default;
};

// A frame's bytes up to its payload.
struct FrameHead {
  FrameHeader header;
  FrameCheck check;  // on links with checksums only
};
static_assert(sizeof(FrameCheck) == 8 && offsetof(FrameCheck, header) == 4);
static_assert(sizeof(FrameHead) == 40 && offsetof(FrameHead, check) == 32);
static_assert(std::is_trivially_copyable_v<FrameHead> && std::has_unique_object_representations_v<FrameHead>);

[[nodiscard]] FrameCheck check_of(FrameHeader const& header, std::span<std::byte const> payload);
// Whether the header and its check belong together.
[[nodiscard]] bool is_intact(FrameHead const& head);

// What both ends of a run must agree on before a byte of it is used.
struct Open {
  std::uint64_t token = 0;                 // the run's capability
  std::uint64_t fingerprint = 0;           // over spec, dtype, elements, reduce
  std::uint64_t channel_digest = 0;        // of the sender's messages to the receiver
  std::uint64_t receiver_incarnation = 0;  // whom the sender means
  std::uint64_t eager_bytes = 0;           // the sender's budget of ungranted bytes for this run
  std::uint32_t sender_rank = 0;
  std::uint32_t receiver_rank = 0;

  friend bool operator==(Open const&, Open const&) = default;
};
static_assert(sizeof(Open) == 48 && alignof(Open) == 8);
static_assert(offsetof(Open, fingerprint) == 8 && offsetof(Open, channel_digest) == 16);
static_assert(offsetof(Open, receiver_incarnation) == 24 && offsetof(Open, eager_bytes) == 32);
static_assert(offsetof(Open, sender_rank) == 40 && offsetof(Open, receiver_rank) == 44);
static_assert(std::has_unique_object_representations_v<Open>);

// Why a run ends: the payload of abort and refuse.
enum class VerdictCode : std::uint16_t {
  peer_lost = 1,
  deadline_exceeded,
  aborted,
  plan_mismatch,
  forbidden,
  epoch_fenced,
  protocol_error,
  corrupt_frame,
  device_failed,
};

struct Verdict {
  std::uint64_t token = 0;  // of the run: an abort with another one is ignored
  VerdictCode code = VerdictCode::aborted;
  std::vector<std::uint32_t> culprits;  // ranks; the first culprits_max are sent
  std::string text;                     // the first text_bytes_max are sent

  friend bool operator==(Verdict const&, Verdict const&) = default;
};

inline constexpr std::size_t description_bytes_max = 256;
inline constexpr std::size_t text_bytes_max = 512;
inline constexpr std::size_t culprits_max = 16;
inline constexpr std::size_t verdict_head_bytes = 16;  // token, code, number of culprits, four bytes of zero
inline constexpr std::size_t open_bytes_max = sizeof(Open) + description_bytes_max;
inline constexpr std::size_t verdict_bytes_max = verdict_head_bytes + culprits_max * 4 + text_bytes_max;
inline constexpr std::size_t lending_open_bytes_max = open_bytes_max + sizeof(Lend);
inline constexpr std::size_t control_bytes_max =
    lending_open_bytes_max > verdict_bytes_max ? lending_open_bytes_max : verdict_bytes_max;
inline constexpr std::uint32_t data_bytes_max = 64u << 20;

// What can be said about a header by itself: magic, type, flags, a length that the type allows, zeros where nothing is
// meant. Errors: LinkErrc::bad_frame with the field and its value.
[[nodiscard]] Status check(FrameHeader const& header);

using OpenBytes = std::array<std::byte, lending_open_bytes_max>;
using VerdictBytes = std::array<std::byte, verdict_bytes_max>;

// Both return the bytes used. A longer text is cut.
[[nodiscard]] std::uint32_t encode(Open const& open, std::string_view description, OpenBytes& to);
[[nodiscard]] std::uint32_t encode(Verdict const& verdict, VerdictBytes& to);
// Behind the bytes used of an open, whose header then has the flag. Returns the bytes used.
[[nodiscard]] std::uint32_t append(Lend const& lend, std::uint32_t open_bytes, OpenBytes& to);

struct DecodedOpen {
  Open open;
  std::span<std::byte const> description_bytes;  // where they were decoded from
  std::optional<Lend> lend{};

  // Printable: it goes into logs and answers.
  [[nodiscard]] std::string description() const;
};
// Errors: LinkErrc::bad_frame. The text of a verdict is made printable, too.
[[nodiscard]] Result<DecodedOpen> decode_open(std::span<std::byte const> payload, bool lends = false);
[[nodiscard]] Result<Verdict> decode_verdict(std::span<std::byte const> payload);

[[nodiscard]] std::string_view name(FrameType type);  // "grant"; "unknown" for what is none

}  // namespace chorus::links
