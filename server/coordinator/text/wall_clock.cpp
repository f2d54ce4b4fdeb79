#include "server/coordinator/text/wall_clock.hpp"

#include <chrono>
#include <cmath>
#include <ctime>

namespace chorus::coordinator {

double wall_seconds() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string rfc3339(double seconds) {
  using std::chrono::days, std::chrono::milliseconds, std::chrono::floor;
  std::chrono::sys_time<milliseconds> const time(milliseconds(std::llround(seconds * 1000)));
  auto const midnight = floor<days>(time);
  std::chrono::year_month_day const date(midnight);
  std::chrono::hh_mm_ss const clock(time - midnight);
  std::string text = "0000-00-00T00:00:00.000Z";
  auto const put = [&text](std::size_t end, auto number) {
    for (auto rest = static_cast<unsigned>(number); rest > 0; rest /= 10)
      text[--end] = static_cast<char>('0' + rest % 10);
  };
  put(4, int(date.year()));
  put(7, unsigned(date.month()));
  put(10, unsigned(date.day()));
  put(13, clock.hours().count());
  put(16, clock.minutes().count());
  put(19, clock.seconds().count());
  put(23, clock.subseconds().count());
  return text;
}

}  // namespace chorus::coordinator
