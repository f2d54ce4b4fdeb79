// Errors that end a link.
#pragma once

#include <system_error>

namespace chorus::links {

enum class LinkErrc {
  closed = 1,     // the peer closed or reset the connection; the detail is the system's message
  bad_frame,      // an invalid frame arrived; the detail says what is wrong
  corrupt_frame,  // a checksum does not match the frame's bytes; the detail names the frame
  broken,         // the link ended at this side or on the way; the peer may not know
  bad_handshake,  // a field of the upgrade request is missing or invalid
};

[[nodiscard]] std::error_category const& link_category();
[[nodiscard]] inline std::error_code make_error_code(LinkErrc e) { return {static_cast<int>(e), link_category()}; }

}  // namespace chorus::links

template <>
struct std::is_error_code_enum<chorus::links::LinkErrc> : std::true_type {};
