// How an HTTP connection becomes a link: GET /v1/link with `Upgrade: chorus-link/1`, the sender's identity in two
// fields, and in a third one where its shared memory is, if it offers that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"
#include "http/message.hpp"
#include "worker/memory/shared_region.hpp"

namespace chorus::links {

inline constexpr std::string_view link_path = "/v1/link";
inline constexpr std::string_view link_protocol = "chorus-link/1";

// Where the frames may go instead of through the connection.
struct SharedMemory {
  memory::Ticket ticket;     // the region of whoever dials
  std::uint64_t offset = 0;  // of the rings in it
  friend bool operator==(SharedMemory const&, SharedMemory const&) = default;
};

struct Introduction {
  std::string worker;
  std::uint64_t incarnation = 0;
  std::optional<SharedMemory> shared_memory{};
  friend bool operator==(Introduction const&, Introduction const&) = default;
};

// The fields of a request to upgrade, beside Connection and Upgrade.
[[nodiscard]] http::Fields to_fields(Introduction const& self);

// Errors: LinkErrc::bad_handshake with the field that is missing or wrong.
[[nodiscard]] Result<Introduction> read_introduction(http::Fields const& fields);

// What becomes of an offer of shared memory.
struct SharedMemoryAnswer {
  bool accepted = false;
  std::string why_not;
  friend bool operator==(SharedMemoryAnswer const&, SharedMemoryAnswer const&) = default;
};

// The 101; `take_over` gets the connection.
[[nodiscard]] http::Response switch_protocols(http::Upgrade take_over, SharedMemoryAnswer const& answer);

// From the 101's fields. Text is made printable. Errors: LinkErrc::bad_handshake.
[[nodiscard]] Result<SharedMemoryAnswer> read_answer(http::Fields const& fields);

}  // namespace chorus::links
