// The wall clock of one process: if this library is preloaded, it is ahead by the number of seconds in the file
// CHORUS_CLOCK_OFFSET. Monotonic clocks are unchanged.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

long offset_s() {
  auto const* const path = std::getenv("CHORUS_CLOCK_OFFSET");
  if (path == nullptr) return 0;
  auto const file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[32] = {};
  auto const length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? std::strtol(text, nullptr, 10) : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  auto const result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset_s();
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec precise{};
  auto const result = clock_gettime(CLOCK_REALTIME, &precise);
  time->tv_sec = precise.tv_sec;
  time->tv_usec = precise.tv_nsec / 1000;
  return result;
}

int timespec_get(timespec* time, int base) noexcept {
  if (base != TIME_UTC) return 0;
  return clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

time_t time(time_t* where) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (where != nullptr) *where = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
