#include "worker/parameters/log/directory_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace chorus::parameters {

DirectoryLock::DirectoryLock(std::string const& path) {
  if (path.empty()) return;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw std::runtime_error("--log-directory " + path +
                           " is in use: another worker has its logs there, and each needs a directory of its own");
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace chorus::parameters
