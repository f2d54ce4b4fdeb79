// How an HTTP connection becomes a link: GET /v1/link with `Upgrade: chorus-link/1`, the sender's identity in two
// fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"
#include "http/message.hpp"

namespace chorus::links {

inline constexpr std::string_view link_path = "/v1/link";
inline constexpr std::string_view link_protocol = "chorus-link/1";

struct Introduction {
  std::string worker;
  std::uint64_t incarnation = 0;
  friend bool operator==(Introduction const&, Introduction const&) = default;
};

// The fields of a request to upgrade, beside Connection and Upgrade.
[[nodiscard]] http::Fields to_fields(Introduction const& self);

// Errors: LinkErrc::bad_handshake with the field that is missing or wrong.
[[nodiscard]] Result<Introduction> read_introduction(http::Fields const& fields);

// The 101; `take_over` gets the connection.
[[nodiscard]] http::Response switch_protocols(http::Upgrade take_over);

}  // namespace chorus::links
