// Errors of an HTTP conversation, as this side of it sees them.
#pragma once

#include <system_error>

namespace chorus::http {

enum class HttpErrc {
  bind_failed = 1,
  bad_url,
  connect_failed,  // every address of the name refused the connection: no process listens there
  no_way,          // the name has no address, or no network leads to it: says nothing about a process there
  local_limit,     // this process has no descriptor, port or memory left: says nothing about the peer
  timed_out,
  peer_closed,
  malformed,
  too_large,
  refused_upgrade,
  tls_failed,  // the detail says whose certificate is wrong in which way
};

[[nodiscard]] std::error_category const& http_category();
[[nodiscard]] inline std::error_code make_error_code(HttpErrc e) { return {static_cast<int>(e), http_category()}; }

}  // namespace chorus::http

template <>
struct std::is_error_code_enum<chorus::http::HttpErrc> : std::true_type {};
