// A disk without room, as this process sees it.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

namespace chorus::testing {

// While it lives, no file of this process grows beyond so many bytes: writes fail in part or whole.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit const now{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(FullDisk const&) = delete;
  FullDisk& operator=(FullDisk const&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace chorus::testing
