// Strict JSON for request bodies: no duplicate keys, limited depth and size, unknown fields refused with a pointer.
//
// decode and encode exist for the messages in http/api; the templates are instantiated in its files, so including
// this header costs nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::http {

inline constexpr std::size_t json_limit_bytes = 1 << 20;          // limit of a request body
inline constexpr std::size_t json_answer_limit_bytes = 16 << 20;  // limit of an answer, which may list many ranks
inline constexpr std::size_t json_limit_depth = 16;

enum class UnknownFields : bool { refuse, ignore };

// Decodes a JSON body into a message. Problems: payload_too_large; malformed_json; invalid_field with errors[] that
// hold the pointer, the expected and the found value.
// Unknown fields are refused in requests of users and in orders (a run, a shard), which must be understood completely.
// They are ignored in answers and in reports between services, whose sender may run another release.
template <class Message>
[[nodiscard]] Checked<Message> decode(std::string_view body, UnknownFields unknown = UnknownFields::refuse);

template <class Message>
[[nodiscard]] std::string encode(Message const& message);

}  // namespace chorus::http
