// The frames of a data link and their encoding: little-endian, 32 bytes of header, 8 bytes of checksums on links that
// have agreed on them, then `length` bytes of payload. docs/reference/wire.md has the rules and a worked example.
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
#include "worker/links/frames/lending.hpp"

namespace chorus::links {

static_assert(std::endian::native == std::endian::little, "frames are read and written as they lie in memory");

enum class FrameType : std::uint8_t {
  open = 1,  // sender -> receiver: a run begins on this link; payload Open and a description
  grant,     // receiver -> sender: `message` may be sent up to byte `offset`
  data,      // sender -> receiver: `length` bytes of `message` at byte `offset`
  abort,     // either way: the run has failed; payload FailureNotice
  refuse,    // receiver -> sender: the open is not accepted, or, for run 0, the link; payload FailureNotice
  ask,       // either way: asks for the rank's state in this run; payload Ask (inquiry.hpp)
  tell,      // either way: the answer to ask; payload Tell
  borrow,    // receiver -> sender: how it gets the messages in the memory that the open lends; payload Borrow
  lies,      // sender -> receiver: the place in lent memory of `message` from byte `offset` on; payload Place
  read,      // receiver -> sender: `message` was read up to byte `offset` and may be overwritten up to there
  returned,  // receiver -> sender: no access to lent memory for this run any more
  room,      // receiver -> sender: the place where the sender's GPU writes `message` from `offset` on; payload Place
  wrote,     // sender -> receiver: `message` was written there up to byte `offset`
  message,  // sender -> receiver: a whole small message between two members of a group; payload MessageHead and content
};

// An open's payload ends with a Lend (lending.hpp).
inline constexpr std::uint8_t lends_flag = 1;
// An open's payload ends with an Envelope: the run is one message between two members of a group.
inline constexpr std::uint8_t message_flag = 2;
// Marks the frames of the acceptor's link on a connection for messages both ways (two_way.hpp). Both ends of that link
// set it in all frames. Users of links never see it.
inline constexpr std::uint8_t back_flag = 0x80;

// Returns true for frames whose payload lies in a run's memory.
[[nodiscard]] constexpr bool is_of_channel(FrameType type) {
  return type == FrameType::data || type == FrameType::open || type == FrameType::lies || type == FrameType::wrote;
}

inline constexpr std::uint16_t frame_magic = 0x4c43;  // "CL" on the wire

struct FrameHeader {
  std::uint16_t magic = frame_magic;
  FrameType type = FrameType::data;
  std::uint8_t flags = 0;   // back_flag; lends_flag or message_flag in an open; otherwise zero
  std::uint32_t epoch = 0;  // of the run, or of the group
  std::uint64_t run = 0;    // in a message, and in the refuse that answers it: the token of the group's epoch
  // In grant, data, lies, read, room and wrote: number of the run's message in this link's direction, from 0. In a
  // message: the tag. Otherwise 0.
  std::uint32_t message = 0;
  std::uint32_t length = 0;  // bytes of payload that follow
  std::uint64_t offset = 0;  // in the same frames: bytes; in a message: Envelope::sequence; otherwise 0

  friend bool operator==(FrameHeader const&, FrameHeader const&) = default;
};
static_assert(sizeof(FrameHeader) == 32 && alignof(FrameHeader) == 8);
static_assert(offsetof(FrameHeader, type) == 2 && offsetof(FrameHeader, flags) == 3);
static_assert(offsetof(FrameHeader, epoch) == 4 && offsetof(FrameHeader, run) == 8);
static_assert(offsetof(FrameHeader, message) == 16 && offsetof(FrameHeader, length) == 20);
static_assert(offsetof(FrameHeader, offset) == 24);
static_assert(std::is_trivially_copyable_v<FrameHeader> && std::has_unique_object_representations_v<FrameHeader>);

// Whether two headers have the same fields but for `length`. Compares words, as they were written, not the fields one
// by one.
[[nodiscard]] inline bool are_alike(FrameHeader const& a, FrameHeader const& b) {
  using Words = std::array<std::uint64_t, 4>;
  auto const left = std::bit_cast<Words>(a), right = std::bit_cast<Words>(b);
  return ((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[3] ^ right[3])) == 0 && a.message == b.message;
}

// The CRC32C checksums after the header, on links with checksums.
struct FrameCheck {
  std::uint32_t payload = 0;  // of the payload's bytes; 0 without payload
  std::uint32_t header = 0;   // of the header's 32 bytes and the 4 of `payload`

  friend bool operator==(FrameCheck const&, FrameCheck const&) = default;
};

// A frame's bytes before its payload.
struct FrameHead {
  FrameHeader header;
  FrameCheck check;  // on links with checksums only
};
static_assert(sizeof(FrameCheck) == 8 && offsetof(FrameCheck, header) == 4);
static_assert(sizeof(FrameHead) == 40 && offsetof(FrameHead, check) == 32);
static_assert(std::is_trivially_copyable_v<FrameHead> && std::has_unique_object_representations_v<FrameHead>);

[[nodiscard]] FrameCheck check_of(FrameHeader const& header, std::span<std::byte const> payload);
// Returns true if the header matches its checksum.
[[nodiscard]] bool is_intact(FrameHead const& head);

// What both ends of a run must agree on before any of its bytes are used.
struct Open {
  std::uint64_t token = 0;                 // the run's capability
  std::uint64_t fingerprint = 0;           // over spec, dtype, elements, reduce
  std::uint64_t channel_digest = 0;        // of the sender's messages to the receiver
  std::uint64_t receiver_incarnation = 0;  // the process that the sender addresses
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

// The end of the payload of an open with message_flag: what the receiver matches with its receives.
struct Envelope {
  std::uint64_t sequence = 0;  // position among all messages of the group's epoch from this sender to this receiver
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;
  std::uint32_t reserved = 0;  // zero

  friend bool operator==(Envelope const&, Envelope const&) = default;
};
static_assert(sizeof(Envelope) == 24 && offsetof(Envelope, bytes) == 8 && offsetof(Envelope, tag) == 16);
static_assert(std::has_unique_object_representations_v<Envelope> && sizeof(Envelope) <= sizeof(Lend));

// The beginning of the payload of a message frame. Its other fields are in the header, so that a message of eight bytes
// and its record in shared memory are one cache line.
struct MessageHead {
  std::uint32_t sender_rank = 0;
  std::uint32_t receiver_rank = 0;

  friend bool operator==(MessageHead const&, MessageHead const&) = default;
};
static_assert(sizeof(MessageHead) == 8 && offsetof(MessageHead, receiver_rank) == 4);
static_assert(std::has_unique_object_representations_v<MessageHead>);

// The largest content of a message frame. Larger messages are runs.
inline constexpr std::size_t message_content_max = 2040;

// The reason why a run ends: code of the payload of abort and refuse.
enum class FailureNoticeCode : std::uint16_t {
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

struct FailureNotice {
  std::uint64_t token = 0;  // of the run; an abort with another token is ignored
  FailureNoticeCode code = FailureNoticeCode::aborted;
  std::vector<std::uint32_t> culprits;  // ranks; the first culprits_max are sent
  std::string text;                     // the first text_bytes_max are sent

  friend bool operator==(FailureNotice const&, FailureNotice const&) = default;
};

inline constexpr std::size_t description_bytes_max = 256;
inline constexpr std::size_t text_bytes_max = 512;
inline constexpr std::size_t culprits_max = 16;
inline constexpr std::size_t failure_notice_head_bytes = 16;  // token, code, number of culprits, four bytes of zero
inline constexpr std::size_t open_bytes_max = sizeof(Open) + description_bytes_max;
inline constexpr std::size_t failure_notice_bytes_max = failure_notice_head_bytes + culprits_max * 4 + text_bytes_max;
inline constexpr std::size_t lending_open_bytes_max = open_bytes_max + sizeof(Lend);
inline constexpr std::size_t control_bytes_max =
    lending_open_bytes_max > failure_notice_bytes_max ? lending_open_bytes_max : failure_notice_bytes_max;
inline constexpr std::uint32_t data_bytes_max = 64u << 20;

// Checks a header by itself: magic, type, flags, a length that the type allows, and zeros in unused fields. Errors:
// LinkErrc::bad_frame with the field and its value.
[[nodiscard]] Status check(FrameHeader const& header);

using OpenBytes = std::array<std::byte, lending_open_bytes_max>;
using FailureNoticeBytes = std::array<std::byte, failure_notice_bytes_max>;

// Return the number of bytes used. Longer texts are cut.
[[nodiscard]] std::uint32_t encode(Open const& open, std::string_view description, OpenBytes& to);
[[nodiscard]] std::uint32_t encode(FailureNotice const& failure_notice, FailureNoticeBytes& to);
// Appends a Lend to an encoded open of `open_bytes` bytes, whose header then has lends_flag. Returns the bytes used.
[[nodiscard]] std::uint32_t append(Lend const& lend, std::uint32_t open_bytes, OpenBytes& to);
// The same of an Envelope and message_flag.
[[nodiscard]] std::uint32_t append(Envelope const& envelope, std::uint32_t open_bytes, OpenBytes& to);

struct DecodedOpen {
  Open open;
  std::span<std::byte const> description_bytes;  // in the decoded payload
  std::optional<Lend> lend{};
  std::optional<Envelope> envelope{};

  // Printable, because it goes into logs and answers.
  [[nodiscard]] std::string description() const;
};
// `flags`: of the header. Errors: LinkErrc::bad_frame. The text of a failure notice is made printable.
[[nodiscard]] Result<DecodedOpen> decode_open(std::span<std::byte const> payload, std::uint8_t flags = 0);
[[nodiscard]] Result<FailureNotice> decode_failure_notice(std::span<std::byte const> payload);

[[nodiscard]] std::string_view name(FrameType type);  // "grant"; "unknown" for an invalid type

}  // namespace chorus::links
