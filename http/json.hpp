// Strict JSON for request bodies: no duplicate keys, limited depth and size, unknown fields refused with a pointer.
//
// decode and encode exist for the messages in http/api; the templates are instantiated in http/api/*.cpp, so including
// this header costs nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/problem.hpp"

namespace chorus::http {

inline constexpr std::size_t json_limit_bytes = 1 << 20;          // of requests
inline constexpr std::size_t json_answer_limit_bytes = 16 << 20;  // of answers, which list what many ranks did
inline constexpr std::size_t json_limit_depth = 16;

enum class UnknownFields : bool { refuse, ignore };

// Problems: payload_too_large; malformed_json; invalid_field with errors[] that hold the pointer, what was expected and
// what was found. Requests from users refuse unknown fields. Answers, and what services tell each other of
// themselves, may be of another release: there they are ignored. Orders (a run, a shard) are refused if not wholly
// understood.
template <class Message>
[[nodiscard]] Checked<Message> decode(std::string_view body, UnknownFields unknown = UnknownFields::refuse);

template <class Message>
[[nodiscard]] std::string encode(Message const& message);

}  // namespace chorus::http
