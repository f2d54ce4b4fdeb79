// Wall-clock time of certificates and tokens: "2027-01-31T23:59:59Z", seconds since 1970. Leases and deadlines use
// steady clocks, which nobody can set.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace chorus::http {

using WallTime = std::chrono::sys_seconds;
using WallClock = std::function<WallTime()>;

[[nodiscard]] WallTime system_time();

[[nodiscard]] std::string to_text(WallTime time);
// Parses times in UTC, in the years 1970 to 9999; nothing for any other text.
[[nodiscard]] std::optional<WallTime> parse_time(std::string_view text);

}  // namespace chorus::http
