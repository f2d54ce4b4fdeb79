// The time of day, only for display.
#pragma once

#include <string>

namespace chorus::coordinator {

// Seconds since 1970.
[[nodiscard]] double wall_seconds();

// Formats seconds since 1970 as RFC 3339 in UTC, like "2026-03-01T12:00:00.123Z"; from 1970 to the year 9999.
[[nodiscard]] std::string rfc3339(double seconds);

}  // namespace chorus::coordinator
