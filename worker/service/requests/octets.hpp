// Bodies of raw bytes: tensors and pushes.
#pragma once

#include <optional>

#include "http/message/message.hpp"

namespace chorus::service {

// Accepts application/octet-stream, no type, and application/x-www-form-urlencoded, which ordinary clients send by
// default (`curl --data-binary @FILE`, Python's urllib). Problem unsupported_media_type, also for a Content-Encoding:
// bytes are stored as they come.
[[nodiscard]] std::optional<http::Problem> check_octets(http::Fields const& fields);

}  // namespace chorus::service
