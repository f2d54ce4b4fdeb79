// A sender on a GPU lends the memory that a run's messages lie in to a receiver of the same host, which reads them
// there, or has the sender write them where they are to be: what an open says of the memory, how the receiver answers,
// and where a part of a message lies; see docs/wire.md.
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

// The end of the payload of an open that has the flag for it.
struct Lend {
  std::array<std::byte, 64> handle{};  // by which another process maps the memory
  std::array<char, 47> uuid{};         // of the GPU that it lies on: "GPU-8e7d...", then zeros
  std::uint8_t writes = 0;             // 1: the sender knows of Way::written, which came later
  std::uint64_t bytes = 0;
  std::uint64_t proof_at = 0;  // where in it 8 bytes hold the sender's incarnation

  friend bool operator==(Lend const&, Lend const&) = default;
};
static_assert(sizeof(Lend) == 128 && alignof(Lend) == 8);
static_assert(offsetof(Lend, uuid) == 64 && offsetof(Lend, writes) == 111 && offsetof(Lend, bytes) == 112 &&
              offsetof(Lend, proof_at) == 120);
static_assert(std::is_trivially_copyable_v<Lend> && std::has_unique_object_representations_v<Lend>);

// How the receiver takes the messages of this run.
enum class Way : std::uint32_t {
  in_place = 1,  // reads them where they lie
  in_frames,     // this time in data frames
  refused,       // it cannot map this memory on the GPU of this run
  written,       // the sender's GPU writes them where they are to lie, in memory that this rank has lent it in this run
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
  std::string why_not;  // for people; the first borrow_text_max are sent

  friend bool operator==(Borrow const&, Borrow const&) = default;
};

// Where the next bytes of a message lie, or are to lie: the payload of a `lies`, or of a `room`.
struct Place {
  std::uint64_t at = 0;  // in the memory that was lent
  std::uint64_t bytes = 0;

  friend bool operator==(Place const&, Place const&) = default;
};
static_assert(sizeof(Place) == 16 && alignof(Place) == 8 && offsetof(Place, bytes) == 8);
static_assert(std::is_trivially_copyable_v<Place> && std::has_unique_object_representations_v<Place>);

inline constexpr std::size_t borrow_text_max = 256;
inline constexpr std::size_t borrow_bytes_max = sizeof(BorrowHead) + borrow_text_max;

[[nodiscard]] std::string uuid_of(Lend const& lend);  // made printable
// Longer ones are cut.
void set_uuid(Lend& lend, std::string_view uuid);

// Returns the bytes used; `to` has borrow_bytes_max.
[[nodiscard]] std::uint32_t encode(Borrow const& borrow, std::span<std::byte> to);

// Errors: LinkErrc::bad_frame. Text is made printable: it goes into logs and answers.
[[nodiscard]] Result<Borrow> decode_borrow(std::span<std::byte const> payload);
[[nodiscard]] Result<Place> decode_place(std::span<std::byte const> payload);

}  // namespace chorus::links
