// Idempotency-Key: the name that a client gives to a request, so that the service recognises a repetition.
#pragma once

#include <optional>
#include <string>

#include "http/message/message.hpp"

namespace chorus::http {

// Value of the field: 1 to 255 printable characters; empty without the field. Problem: bad_request.
[[nodiscard]] Checked<std::optional<std::string>> idempotency_key(Fields const& fields);

// Returns the problem idempotency_reused; `what` is the request that used the key before.
[[nodiscard]] Problem idempotency_reused(std::string_view what);

}  // namespace chorus::http
