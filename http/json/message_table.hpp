// The fields and types of a message of http/api, for code that describes messages, such as http/openapi.
#pragma once

namespace chorus::http {

namespace codec {
struct TypeCodec;
}

// Returns the table by which the message is read and written. The table is a constant and never destroyed.
template <class Message>
[[nodiscard]] codec::TypeCodec const& table_of();

}  // namespace chorus::http
