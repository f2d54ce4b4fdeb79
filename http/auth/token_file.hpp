// The file of tokens: one JSON object per line, from which no token can be recovered.
//
//   {"id":"ci","role":"submit","sha256":"9f86d0...","expires":"2027-01-31T00:00:00Z"}
//
// A token is "chorus_" and 256 random bits as 64 hexadecimal digits. Such a token cannot be guessed, so a plain SHA-256
// protects it as well as a slow hash would, and takes less than a microsecond per request. With a slow hash, strangers
// could keep the service busy with wrong tokens.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/calendar.hpp"
#include "collectives/core/result.hpp"
#include "http/message/access.hpp"
#include "http/tls/errc.hpp"

namespace chorus::http {

using Sha256 = std::array<std::byte, 32>;
[[nodiscard]] Sha256 sha256(std::string_view text);

inline constexpr std::string_view token_prefix = "chorus_";

// Makes a token from 32 secret random bytes.
[[nodiscard]] std::string make_token(std::span<std::byte const, 32> random);

struct TokenEntry {
  std::string id;  // [A-Za-z0-9._-]{1,64}: stands for the token in logs, audits and problems
  Access role = Access::read;
  Sha256 hash{};
  std::optional<WallTime> expires;
};

// Includes the end of line.
[[nodiscard]] std::string to_line(TokenEntry const& entry);

// Empty lines and those that begin with '#' are skipped. Errors: AuthErrc::malformed with the number of the line.
[[nodiscard]] Result<std::vector<TokenEntry>> parse_tokens(std::string_view text);

// Errors: AuthErrc::unreadable, malformed; the detail begins with the path.
[[nodiscard]] Result<std::vector<TokenEntry>> read_tokens(std::string const& path);

// Creates the file, readable only by its owner, if it does not exist. Otherwise writes a new file beside it that
// replaces it at once, with its owner, group and mode. Errors: AuthErrc::exists if the id exists, unreadable,
// malformed.
[[nodiscard]] Status append_token(std::string const& path, TokenEntry const& entry);

// Removes the line. False: no token has this id. Errors: AuthErrc::unreadable, malformed.
[[nodiscard]] Result<bool> revoke_token(std::string const& path, std::string_view id);

// Reads a file that holds one token in its first line. Errors: AuthErrc::unreadable; malformed if that is not a token.
[[nodiscard]] Result<std::string> read_secret(std::string const& path);

}  // namespace chorus::http
