// The handshake that upgrades an HTTP connection to a link: GET /v1/link with `Upgrade: chorus-link/1`. Two fields
// identify the dialer. Others offer shared memory, checksums, lent memory of GPUs, and messages both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"
#include "http/message/message.hpp"
#include "worker/memory/regions/shared_region.hpp"

namespace chorus::links {

inline constexpr std::string_view link_path = "/v1/link";
inline constexpr std::string_view link_protocol = "chorus-link/1";

// Shared memory that may carry the frames instead of the connection.
struct SharedMemory {
  memory::Ticket ticket;     // the dialer's region
  std::uint64_t offset = 0;  // of the rings in it
  friend bool operator==(SharedMemory const&, SharedMemory const&) = default;
};

// This worker's setting for checksums of frames (frame_stream.hpp).
enum class ChecksumMode : std::uint8_t {
  automatic,  // unless the dialer reaches its peer through the loopback interface or with TLS
  on,         // on every connection that carries frames; a peer that cannot is refused
  off,
};

// "auto", "on", "off"; nothing for other texts.
[[nodiscard]] std::optional<ChecksumMode> parse_checksum_mode(std::string_view text);

// What a dialer offers: no checksums, that it can, or that it wants them.
enum class ChecksumOffer : std::uint8_t { none, possible, wanted };

// Returns the offer of a dialer in this mode to the peer of this URL.
[[nodiscard]] ChecksumOffer checksum_offer(ChecksumMode mode, std::string_view url);
// Returns true if an acceptor in this mode takes the offer. The 101 tells the dialer.
[[nodiscard]] bool takes_checksums(ChecksumMode mode, ChecksumOffer offer);

struct Introduction {
  std::string worker;
  std::uint64_t incarnation = 0;
  std::optional<SharedMemory> shared_memory{};
  ChecksumOffer checksums = ChecksumOffer::none;
  // Number of the host (host_number.hpp) on which this worker lends GPU memory (frames/lending.hpp); empty: it lends
  // none.
  std::optional<std::uint64_t> lending_host{};
  // The connection may carry messages both ways (two_way.hpp).
  bool both_ways = false;
  friend bool operator==(Introduction const&, Introduction const&) = default;
};

// Returns the fields of the upgrade request, except Connection and Upgrade.
[[nodiscard]] http::Fields to_fields(Introduction const& self);

// Errors: LinkErrc::bad_handshake with the field that is missing or wrong.
[[nodiscard]] Result<Introduction> read_introduction(http::Fields const& fields);

// The answer to an offer of shared memory.
struct SharedMemoryAnswer {
  bool accepted = false;
  std::string why_not;
  friend bool operator==(SharedMemoryAnswer const&, SharedMemoryAnswer const&) = default;
};

// What an acceptor agrees to.
struct Answer {
  SharedMemoryAnswer shared_memory{};
  bool has_checksums = false;
  std::optional<std::uint64_t> borrowing_host{};
  bool both_ways = false;
};

// Makes the 101 response; `take_over` gets the connection.
[[nodiscard]] http::Response switch_protocols(http::Upgrade take_over, Answer const& answer);

// Read the fields of the 101. Text is made printable. Errors: LinkErrc::bad_handshake.
[[nodiscard]] Result<SharedMemoryAnswer> read_answer(http::Fields const& fields);
[[nodiscard]] Result<bool> read_checksums_answer(http::Fields const& fields);
// Returns the host on which the acceptor reads lent GPU memory; empty: it reads none.
[[nodiscard]] std::optional<std::uint64_t> read_borrows_answer(http::Fields const& fields);
[[nodiscard]] bool read_both_ways_answer(http::Fields const& fields);

}  // namespace chorus::links
