// What a message of http/api is made of: for those who describe messages, as http/openapi does.
#pragma once

namespace chorus::http {

namespace codec {
struct TypeCodec;
}

// The same table that reads and writes the message. A constant: it is there as long as the program.
template <class Message>
[[nodiscard]] codec::TypeCodec const& table_of();

}  // namespace chorus::http
