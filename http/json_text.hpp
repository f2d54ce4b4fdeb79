// JSON as text goes out: quoting, and numbers that read back as the same value.
#pragma once

#include <string>
#include <string_view>

namespace chorus::http {

// Nothing in it has to be escaped or replaced.
[[nodiscard]] bool is_written_as_it_is(std::string_view text);

// With quotes. What is not UTF-8 becomes U+FFFD: details quote what strangers sent, and the answer must stay JSON.
void append_quoted(std::string& out, std::string_view text);

// The shortest text that reads back as the same double; null for infinities and NaN, which JSON does not have.
void append_number(std::string& out, double value);

}  // namespace chorus::http
