// ETags of tensors and the conditions of requests (RFC 9110, 13).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/message.hpp"

namespace chorus::service {

// A strong tag that is never reused: versions begin again at 1 in a new process, so its incarnation is part of the tag.
[[nodiscard]] std::string entity_tag(std::uint64_t incarnation, std::uint64_t version);

// The value of If-Match or If-None-Match.
struct TagList {
  bool any = false;               // "*"
  std::vector<std::string> tags;  // with their quotes, and W/ if weak

  [[nodiscard]] bool matches_strongly(std::string_view tag) const;  // If-Match
  [[nodiscard]] bool matches_weakly(std::string_view tag) const;    // If-None-Match
};

// Empty if the request has no such field. Problem bad_request for a malformed list.
[[nodiscard]] http::Checked<std::optional<TagList>> find_tags(http::Fields const& fields, std::string_view field);

}  // namespace chorus::service
