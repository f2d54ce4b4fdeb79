// Payloads about lent GPU memory. A sender lends the memory of a run's messages to a receiver on the same host. The
// receiver reads the messages there, or the sender's GPU writes them into the receiver's memory. See
// docs/reference/wire_memory.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "collectives/core/result.hpp"

namespace chorus::links {

// The end of the payload of an open with lends_flag.
struct Lend {
  std::array<std::byte, 64> handle{};  // with which another process maps the memory
  std::array<char, 47> uuid{};         // of the memory's GPU: "GPU-8e7d...", then zeros
  std::uint8_t writes = 0;             // 1: the sender supports Way::written, which older versions do not
  std::uint64_t bytes = 0;
  std::uint64_t proof_at = 0;  // offset in the memory of 8 bytes that hold the sender's incarnation

  friend bool operator==(Lend const&, Lend const&) = default;
};
static_assert(sizeof(Lend) == 128 && alignof(Lend) == 8);
static_assert(offsetof(Lend, uuid) == 64 && offsetof(Lend, writes) == 111 && offsetof(Lend, bytes) == 112 &&
              offsetof(Lend, proof_at) == 120);
static_assert(std::is_trivially_copyable_v<Lend> && std::has_unique_object_representations_v<Lend>);

// How the receiver gets the messages of this run.
enum class Way : std::uint32_t {
  in_place = 1,  // it reads them in the lent memory
  in_frames,     // in data frames, for this run
  refused,       // in data frames: it cannot map this memory on the run's GPU
  written,       // the sender's GPU writes them into memory that the receiver has lent to the sender in this run
};

struct BorrowHead {
  Way way = Way::in_frames;
  std::uint32_t zero = 0;

  friend bool operator==(BorrowHead const&, BorrowHead const&) = default;
};
static_assert(sizeof(BorrowHead) == 8 && offsetof(BorrowHead, zero) == 4);
static_assert(std::is_trivially_copyable_v<BorrowHead> && std::has_unique_object_representations_v<BorrowHead>);

struct Borrow {
  BorrowHead head;
  std::string why_not;  // for people; the first borrow_text_max bytes are sent

  friend bool operator==(Borrow const&, Borrow const&) = default;
};

// The place of the next bytes of a message: payload of `lies`, and of `room`, where they will be written.
struct Place {
  std::uint64_t at = 0;  // offset in the lent memory
  std::uint64_t bytes = 0;

  friend bool operator==(Place const&, Place const&) = default;
};
static_assert(sizeof(Place) == 16 && alignof(Place) == 8 && offsetof(Place, bytes) == 8);
static_assert(std::is_trivially_copyable_v<Place> && std::has_unique_object_representations_v<Place>);

inline constexpr std::size_t borrow_text_max = 256;
inline constexpr std::size_t borrow_bytes_max = sizeof(BorrowHead) + borrow_text_max;

[[nodiscard]] std::string uuid_of(Lend const& lend);  // made printable
// Longer UUIDs are cut.
void set_uuid(Lend& lend, std::string_view uuid);

// Returns the number of bytes used; `to` has borrow_bytes_max bytes.
[[nodiscard]] std::uint32_t encode(Borrow const& borrow, std::span<std::byte> to);

// Errors: LinkErrc::bad_frame. Text is made printable, because it goes into logs and answers.
[[nodiscard]] Result<Borrow> decode_borrow(std::span<std::byte const> payload);
[[nodiscard]] Result<Place> decode_place(std::span<std::byte const> payload);

}  // namespace chorus::links
