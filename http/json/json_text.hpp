// Writes JSON text: quoted strings, and numbers that read back as the same value.
#pragma once

#include <string>
#include <string_view>

namespace chorus::http {

// True if no character of the text has to be escaped or replaced.
[[nodiscard]] bool is_written_as_it_is(std::string_view text);

// Appends the text with quotes. Invalid UTF-8 becomes U+FFFD: details quote text of strangers, and the answer must stay
// JSON.
void append_quoted(std::string& out, std::string_view text);

// Appends the shortest text that reads back as the same double; null for infinities and NaN, which JSON does not have.
void append_number(std::string& out, double value);

}  // namespace chorus::http
