// How an HTTP connection becomes a link: GET /v1/link with `Upgrade: chorus-link/1`, the sender's identity in two
// fields; in others where its shared memory is, if it offers that, whether frames are to carry checksums, whether opens
// may lend memory of GPUs, and whether messages may go both ways.
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

// Whether frames carry checksums (frame_stream.hpp), as this worker is told to have it.
enum class ChecksumMode : std::uint8_t {
  automatic,  // where the dialer reaches its peer by more than the loopback interface, and without TLS
  on,         // on every connection that carries frames; a peer that cannot is refused
  off,
};

// "auto", "on", "off"; nothing for other texts.
[[nodiscard]] std::optional<ChecksumMode> parse_checksum_mode(std::string_view text);

// What a dialer says of them: nothing, that it can, or that it wants them.
enum class ChecksumOffer : std::uint8_t { none, possible, wanted };

// Of a dialer in this mode to the peer of this URL.
[[nodiscard]] ChecksumOffer checksum_offer(ChecksumMode mode, std::string_view url);
// Of an acceptor in this mode. The dialer finds it in the 101.
[[nodiscard]] bool takes_checksums(ChecksumMode mode, ChecksumOffer offer);

struct Introduction {
  std::string worker;
  std::uint64_t incarnation = 0;
  std::optional<SharedMemory> shared_memory{};
  ChecksumOffer checksums = ChecksumOffer::none;
  // Lends device memory to who reads it where it lies (lending.hpp), on this host (host_number.hpp); nothing: does not.
  std::optional<std::uint64_t> lending_host{};
  // The connection may carry messages either way (two_way.hpp).
  bool both_ways = false;
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

// What an acceptor agrees to.
struct Answer {
  SharedMemoryAnswer shared_memory{};
  bool has_checksums = false;
  std::optional<std::uint64_t> borrowing_host{};
  bool both_ways = false;
};

// The 101; `take_over` gets the connection.
[[nodiscard]] http::Response switch_protocols(http::Upgrade take_over, Answer const& answer);

// From the 101's fields. Text is made printable. Errors: LinkErrc::bad_handshake.
[[nodiscard]] Result<SharedMemoryAnswer> read_answer(http::Fields const& fields);
[[nodiscard]] Result<bool> read_checksums_answer(http::Fields const& fields);
// The host on which the acceptor would read device memory that opens on this link lend; nothing: it would not.
[[nodiscard]] std::optional<std::uint64_t> read_borrows_answer(http::Fields const& fields);
[[nodiscard]] bool read_both_ways_answer(http::Fields const& fields);

}  // namespace chorus::links
