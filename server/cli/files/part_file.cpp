#include "server/cli/files/part_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/cli/text/errc.hpp"

namespace chorus::cli {
namespace {

Error exists(std::string const& path) { return {CliErrc::bad_file, path + " exists: --force takes its place"}; }

}  // namespace

bool is_standard(std::string_view path) { return path == "-"; }

Status check_absent(std::string const& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0) return exists(path);
  auto const part = path + ".part";
  if (::lstat(part.c_str(), &about) == 0)
    return Error(CliErrc::bad_file, part + " exists: somebody writes " + path +
                                        " just now, or was killed while doing so; --force begins it anew");
  return ok();
}

Status check_place(std::string const& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode))
    return Error(CliErrc::bad_file, path + " is a directory: name the file in it");
  // The rename of the new file would put it in place of a device, a pipe or a link such as /dev/stdout.
  if (::lstat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode))
    return Error(CliErrc::bad_file, path + " is no plain file, and would be replaced by one");
  auto const slash = path.rfind('/');
  auto const directory =
      slash == std::string::npos ? std::string(".") : path.substr(0, std::max<std::size_t>(slash, 1));
  if (::stat(directory.c_str(), &about) != 0 || !S_ISDIR(about.st_mode))
    return Error(CliErrc::bad_file, "there is no directory " + directory);
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    return Error(CliErrc::bad_file, directory + ": " + std::generic_category().message(errno));
  return ok();
}

PartFile::PartFile(std::string path, bool overwrites)
    : path_(std::move(path)), part_(path_ + ".part"), overwrites_(overwrites) {}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::move(other.part_)),
      overwrites_(other.overwrites_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

PartFile::~PartFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!part_.empty()) ::unlink(part_.c_str());
}

Error PartFile::failed() const {
  return {CliErrc::bad_file, (part_.empty() ? path_ : part_) + ": " + std::generic_category().message(errno)};
}

Result<PartFile> PartFile::of_standard_output() {
  PartFile file("standard output", true);
  file.part_.clear();
  file.descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (file.descriptor_ < 0) return file.failed();
  return file;
}

Result<PartFile> PartFile::create(std::string path, bool overwrites) {
  PartFile file(std::move(path), overwrites);
  if (!overwrites)
    if (auto const absent = check_absent(file.path_); !absent) return absent.error();
  constexpr mode_t mode = 0666;  // reduced by the umask
  file.descriptor_ = ::open(file.part_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrites ? O_TRUNC : O_EXCL), mode);
  if (file.descriptor_ < 0) return file.failed();
  return file;
}

Status PartFile::append(std::span<std::byte const> bytes) {
  while (!bytes.empty()) {
    auto const written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ok();
}

Status PartFile::finish() {
  if (part_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) return failed();
    return ok();
  }
  if (::fsync(descriptor_) != 0) return failed();
  auto named = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, path_.c_str(), overwrites_ ? 0 : RENAME_NOREPLACE);
  if (named != 0 && errno == EEXIST) return exists(path_);
  // Some file systems do not support a rename that never replaces a file.
  if (named != 0 && errno == EINVAL) named = ::rename(part_.c_str(), path_.c_str());
  if (named != 0) return failed();
  ::close(std::exchange(descriptor_, -1));
  return ok();
}

}  // namespace chorus::cli
