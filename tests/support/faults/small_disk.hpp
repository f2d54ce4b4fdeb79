// A small disk that a test fills while programs use it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {

// A separate file system of 8 MiB, unmounted with the object.
class SmallDisk {
 public:
  SmallDisk() : path_(scratch_ / "disk") {
    std::filesystem::create_directory(path_);
    if (::mount("chorus-test", path_.c_str(), "tmpfs", 0, "size=8m") != 0) why_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (why_.empty()) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(SmallDisk const&) = delete;
  SmallDisk& operator=(SmallDisk const&) = delete;

  [[nodiscard]] std::string const& path() const { return path_; }
  // Prints the reason if the disk could not be made.
  [[nodiscard]] bool is_there() const {
    if (!why_.empty()) MESSAGE("skipped: no file system can be mounted here: " << why_);
    return why_.empty();
  }
  void fill() const {
    std::string const block(64 << 10, 'x');
    auto const file = ::open((path_ + "/filler").c_str(), O_WRONLY | O_CREAT, 0600);
    while (::write(file, block.data(), block.size()) > 0) continue;
    ::close(file);
  }
  void make_room() const { std::filesystem::remove(path_ + "/filler"); }

 private:
  ScratchDirectory const scratch_;
  std::string const path_;
  std::string why_;
};

}  // namespace chorus::testing
