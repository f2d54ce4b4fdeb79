// Detects messages that the network has changed: CRC32C of the body and of the fields that say what the body is for.
// The sender computes it; the receiver checks it before it uses any part of the message. docs/reference/wire.md has the
// format and a worked example.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/message/message.hpp"

namespace chorus::http {

// Chorus-Message-Crc32c: 0a1b2c3d-4e5f6071
inline constexpr std::string_view message_checksum_field = "Chorus-Message-Crc32c";

struct MessageChecksum {
  std::uint32_t body = 0;
  std::uint32_t head = 0;  // includes the checksum of the body
};

// `first`: "PUT /v1/parameters/w/value" for a request, "200" for an answer. Fields that proxies add or change are not
// covered.
[[nodiscard]] MessageChecksum checksum_of(std::string_view first, Fields const& fields,
                                          std::span<std::byte const> body);
// Like checksum_of(), for a body of any length that continues in `rest`; other work of the thread runs between two
// pieces. The fields outlive the call.
[[nodiscard]] boost::asio::awaitable<MessageChecksum> checksum_in_turns(std::string first, Fields const& fields,
                                                                        std::span<std::byte const> body,
                                                                        std::span<std::byte const> rest = {});
[[nodiscard]] std::uint32_t checksum_of_head(std::string_view first, Fields const& fields, std::uint32_t of_body);

[[nodiscard]] std::string to_text(MessageChecksum checksum);
[[nodiscard]] std::optional<MessageChecksum> parse_message_checksum(std::string_view text);

// Checks the head of a received request. Returns the checksum of its body that is still to come; empty if the request
// has no checksum. Problems: bad_request, digest_mismatch.
[[nodiscard]] Checked<std::optional<std::uint32_t>> checked_head(Request const& request, bool has_body);

}  // namespace chorus::http
