// Detects whether a file has changed since it was last read. Cheap enough for every request: it calls stat() at most
// once a second.
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
  // Returns true the first time, and whenever the file or its content has been replaced since.
  [[nodiscard]] bool has_changed(TimePoint now);
  // Makes the next has_changed() call stat() at once, because the caller has reason to expect a change.
  void look_again() { next_look_ = {}; }
  // Makes the next has_changed() that calls stat() return true, because the caller could not read the file. Returns
  // false if this is why the last one returned true: the caller has complained already.
  bool forget() {
    seen_ = {};
    is_forgotten_ = true;
    return !was_forgotten_;
  }

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
  bool is_forgotten_ = false, was_forgotten_ = false;  // since, and before, has_changed() last returned true
};

}  // namespace chorus::http
