// What tells a message that the network has changed from the one that was sent: CRC32C of its body and of what in its
// head says what the body is for. Computed by those who send, looked at by those who receive, before either believes
// anything. docs/wire.md has the format and a worked example.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/message.hpp"

namespace chorus::http {

// Chorus-Message-Crc32c: 0a1b2c3d-4e5f6071
inline constexpr std::string_view message_checksum_field = "Chorus-Message-Crc32c";

struct MessageChecksum {
  std::uint32_t body = 0;
  std::uint32_t head = 0;  // that of the body included
};

// `first`: "PUT /v1/parameters/w/value" of a request, "200" of an answer. Fields that proxies add or change are left
// out.
[[nodiscard]] MessageChecksum checksum_of(std::string_view first, Fields const& fields,
                                          std::span<std::byte const> body);
[[nodiscard]] std::uint32_t checksum_of_head(std::string_view first, Fields const& fields, std::uint32_t of_body);

[[nodiscard]] std::string to_text(MessageChecksum checksum);
[[nodiscard]] std::optional<MessageChecksum> parse_message_checksum(std::string_view text);

// Of a request whose head has come, with the checksum of the body that is to come; nothing if it does not say.
// Problems: bad_request, digest_mismatch.
[[nodiscard]] Checked<std::optional<std::uint32_t>> checked_head(Request const& request, bool has_body);

}  // namespace chorus::http
