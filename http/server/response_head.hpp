// Status line and header fields of a response as they are sent.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "http/message/message.hpp"

namespace chorus::http {

[[nodiscard]] bool has_no_body(unsigned status);
// The body, unless it is a stream.
[[nodiscard]] std::span<std::byte const> content_of(Response const& response);
// True for a stream of unknown length.
[[nodiscard]] bool is_open_ended(Response const& response);

// Replaces `head`. `old_version`: the client speaks HTTP/1.0.
void write_head(std::string& head, Response const& response, std::string_view date, bool old_version, bool keep_alive);

}  // namespace chorus::http
