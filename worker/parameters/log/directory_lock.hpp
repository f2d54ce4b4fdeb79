// The lock on a directory of push logs: two workers that write there would remove each other's.
#pragma once

#include <string>

namespace chorus::parameters {

// Held while the object lives, and by one process at a time.
class DirectoryLock {
 public:
  // Throws std::runtime_error if another one holds the lock. Holds none if the path is empty, or the directory cannot
  // be opened or locked: what is wrong with it is said when a log is written there.
  explicit DirectoryLock(std::string const& path);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock const&) = delete;
  DirectoryLock& operator=(DirectoryLock const&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace chorus::parameters
