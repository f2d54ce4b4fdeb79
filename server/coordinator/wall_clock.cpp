#include "server/coordinator/wall_clock.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace chorus::coordinator {

double wall_seconds() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string rfc3339(double seconds) {
  auto const milliseconds = static_cast<long long>(std::llround(seconds * 1000));
  auto const whole = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  std::array<char, 24> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%s.%03dZ", date.data(), static_cast<int>(milliseconds % 1000));
  return text.data();
}

}  // namespace chorus::coordinator
