// Whether a file has changed since it was last read, for what is looked at with every request: the system is asked at
// most once a second.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <string>

namespace chorus::http {

// A value. The clock's time points never go back.
class WatchedFile {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds period{1};

  explicit WatchedFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string const& path() const { return path_; }
  // True the first time, and whenever another file, or another content, has taken the place of the last one.
  [[nodiscard]] bool has_changed(TimePoint now);

 private:
  struct Mark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = -1;
    timespec modified{};
  };
  std::string path_;
  TimePoint next_look_{};
  Mark seen_;
};

}  // namespace chorus::http
