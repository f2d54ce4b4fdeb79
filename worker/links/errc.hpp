// How a link can end.
#pragma once

#include <system_error>

namespace chorus::links {

enum class LinkErrc {
  closed = 1,     // the other side closed the connection, or it broke; the detail is what the system said
  bad_frame,      // what arrived cannot be; the detail says what is wrong with it
  corrupt_frame,  // its checksum says that its bytes were changed on the way; the detail says which frame
  broken,         // it ended here or on the way: the peer may know nothing of that
  bad_handshake,  // the upgrade request lacks a field, or has one that cannot be
};

[[nodiscard]] std::error_category const& link_category();
[[nodiscard]] inline std::error_code make_error_code(LinkErrc e) { return {static_cast<int>(e), link_category()}; }

}  // namespace chorus::links

template <>
struct std::is_error_code_enum<chorus::links::LinkErrc> : std::true_type {};
