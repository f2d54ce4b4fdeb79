#include "server/coordinator/journal/file_identity.hpp"

#include <sys/stat.h>

namespace chorus::coordinator {

std::optional<FileIdentity> identity_of(std::string const& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

}  // namespace chorus::coordinator
