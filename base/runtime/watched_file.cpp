#include "base/runtime/watched_file.hpp"

#include <utility>

namespace chorus::http {

bool WatchedFile::has_changed(TimePoint now) {
  if (now < next_look_) return false;
  next_look_ = now + period;
  struct stat status {};
  Mark mark;
  if (::stat(path_.c_str(), &status) == 0)
    mark = {status.st_dev, status.st_ino, status.st_size, status.st_mtim};
  else
    mark.bytes = -2;  // no file: differs from every file and from the initial mark
  bool const same = mark.device == seen_.device && mark.inode == seen_.inode && mark.bytes == seen_.bytes &&
                    mark.modified.tv_sec == seen_.modified.tv_sec && mark.modified.tv_nsec == seen_.modified.tv_nsec;
  seen_ = mark;
  if (!same) was_forgotten_ = std::exchange(is_forgotten_, false);
  return !same;
}

}  // namespace chorus::http
