// The time of day, for people: nothing is decided by it.
#pragma once

#include <string>

namespace chorus::coordinator {

// Seconds since 1970.
[[nodiscard]] double wall_seconds();

// "2026-03-01T12:00:00.123Z", RFC 3339 in UTC. Seconds since 1970, not before, nor after the year 9999.
[[nodiscard]] std::string rfc3339(double seconds);

}  // namespace chorus::coordinator
