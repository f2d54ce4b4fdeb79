// Errors in the files of tokens, keys and certificates.
#pragma once

#include <system_error>

namespace chorus::http {

enum class AuthErrc {
  unreadable = 1,   // a file of tokens, a key, an audit log: the detail says which and why
  malformed,        // the detail has the line
  exists,           // a token of this id exists
  not_protected,    // an address that other hosts reach, without authentication
  bad_certificate,  // missing, not for this key, expired, or not for the advertised name
};

[[nodiscard]] std::error_category const& auth_category();
[[nodiscard]] inline std::error_code make_error_code(AuthErrc e) { return {static_cast<int>(e), auth_category()}; }

}  // namespace chorus::http

template <>
struct std::is_error_code_enum<chorus::http::AuthErrc> : std::true_type {};
