#include "http/message/http_date.hpp"

#include <array>
#include <cstdio>

namespace chorus::http {

std::string http_date(std::time_t seconds) {
  // strftime would use the locale's names of days and months.
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 64> text{};
  auto const size = std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                  days.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                                  months.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900, utc.tm_hour,
                                  utc.tm_min, utc.tm_sec);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string_view DateClock::now() {
  if (auto const second = std::time(nullptr); second != second_) {
    second_ = second;
    text_ = http_date(second);
  }
  return text_;
}

}  // namespace chorus::http
