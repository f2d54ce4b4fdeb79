// The file of tokens: one JSON object per line, and nothing in it from which a token could be made again.
//
//   {"id":"ci","role":"submit","sha256":"9f86d0...","expires":"2027-01-31T00:00:00Z"}
//
// A token is "chorus_" and 256 random bits as 64 hexadecimal digits. Nobody guesses those, so a plain SHA-256 keeps
// them as well as any slow hash would, and costs a request less than a microsecond; a slow one would let strangers keep
// the service busy with wrong tokens.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/access.hpp"
#include "http/auth/calendar.hpp"
#include "http/auth/errc.hpp"

namespace chorus::http {

using Sha256 = std::array<std::byte, 32>;
[[nodiscard]] Sha256 sha256(std::string_view text);

inline constexpr std::string_view token_prefix = "chorus_";

// Of 32 bytes that nobody else knows.
[[nodiscard]] std::string make_token(std::span<std::byte const, 32> random);

struct TokenEntry {
  std::string id;  // [A-Za-z0-9._-]{1,64}: in logs, audits and problems instead of the token
  Access role = Access::read;
  Sha256 hash{};
  std::optional<WallTime> expires;
};

// With its end of line.
[[nodiscard]] std::string to_line(TokenEntry const& entry);

// Empty lines and those that begin with '#' are skipped. Errors: AuthErrc::malformed with the number of the line.
[[nodiscard]] Result<std::vector<TokenEntry>> parse_tokens(std::string_view text);

// Errors: AuthErrc::unreadable, malformed; the detail begins with the path.
[[nodiscard]] Result<std::vector<TokenEntry>> read_tokens(std::string const& path);

// Makes the file, readable by its owner alone, if there is none. What is there is written anew beside it and takes its
// place at once. Errors: AuthErrc::exists for an id that is there, unreadable, malformed.
[[nodiscard]] Status append_token(std::string const& path, TokenEntry const& entry);

// Takes the line out. False: there is none of this id. Errors: AuthErrc::unreadable, malformed.
[[nodiscard]] Result<bool> revoke_token(std::string const& path, std::string_view id);

// A file that holds one token: its first line. Errors: AuthErrc::unreadable; malformed for what is no token.
[[nodiscard]] Result<std::string> read_secret(std::string const& path);

}  // namespace chorus::http
