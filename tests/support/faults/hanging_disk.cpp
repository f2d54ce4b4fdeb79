// A disk that does not respond, for one process: if this library is preloaded, calls that open or sync files below
// CHORUS_HANG_BELOW do not return while the file CHORUS_HANG_WHILE exists. Signals do not interrupt them.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

template <class Function>
Function next(char const* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void pass(char const* path) {
  auto const* const below = std::getenv("CHORUS_HANG_BELOW");
  auto const* const flag = std::getenv("CHORUS_HANG_WHILE");
  if (below == nullptr || flag == nullptr || std::strncmp(path, below, std::strlen(below)) != 0) return;
  timespec const moment{0, 1'000'000};
  while (access(flag, F_OK) == 0) nanosleep(&moment, nullptr);
}

void pass(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  auto const length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = '\0';
  pass(path);
}

mode_t mode_of(int flags, va_list& arguments) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

}  // namespace

extern "C" {

int open(char const* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  auto const mode = mode_of(flags, arguments);
  va_end(arguments);
  pass(path);
  return next<int (*)(char const*, int, ...)>("open")(path, flags, mode);
}

int open64(char const* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  auto const mode = mode_of(flags, arguments);
  va_end(arguments);
  pass(path);
  return next<int (*)(char const*, int, ...)>("open64")(path, flags, mode);
}

int fsync(int descriptor) {
  pass(descriptor);
  return next<int (*)(int)>("fsync")(descriptor);
}

int fdatasync(int descriptor) {
  pass(descriptor);
  return next<int (*)(int)>("fdatasync")(descriptor);
}
}
