// What can be wrong with the files that say who may come in.
#pragma once

#include <system_error>

namespace chorus::http {

enum class AuthErrc {
  unreadable = 1,   // a file of tokens, a key, an audit log: the detail says which and why
  malformed,        // the detail has the line
  exists,           // a token of this id
  not_protected,    // an address that others reach, without authentication
  bad_certificate,  // no certificate, not for this key, expired, not for the advertised name
};

[[nodiscard]] std::error_category const& auth_category();
[[nodiscard]] inline std::error_code make_error_code(AuthErrc e) { return {static_cast<int>(e), auth_category()}; }

}  // namespace chorus::http

template <>
struct std::is_error_code_enum<chorus::http::AuthErrc> : std::true_type {};
