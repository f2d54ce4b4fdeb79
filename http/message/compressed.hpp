// Compresses text answers with gzip for clients that accept it (RFC 9110 section 12.5.3).
#pragma once

#include <string_view>

#include "http/message/message.hpp"

namespace chorus::http {

// True if the value of an Accept-Encoding field names gzip without q=0.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

// Compresses successful, complete text answers of at least 1 KiB. The answer becomes a stream, so that the thread that
// serves all connections compresses only one piece at a time. A strong ETag becomes weak.
void compress_if_wanted(Request const& request, Response& response);

}  // namespace chorus::http
