// Times of day in header fields (RFC 9110 section 5.6.7).
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace chorus::http {

// Returns text like "Sun, 06 Nov 1994 08:49:37 GMT", always 29 characters.
[[nodiscard]] std::string http_date(std::time_t seconds);

// The Date field of answers, formatted again once a second. Used on one thread.
class DateClock {
 public:
  // The result is valid until the next call.
  [[nodiscard]] std::string_view now();

 private:
  std::time_t second_ = -1;
  std::string text_;
};

}  // namespace chorus::http
