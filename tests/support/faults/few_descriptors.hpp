// A process that may open no more files.
#pragma once

#include <sys/resource.h>

namespace chorus::testing {

// While it lives, the process can open no descriptor.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto few = before_;
    few.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(FewDescriptors const&) = delete;
  FewDescriptors& operator=(FewDescriptors const&) = delete;

 private:
  rlimit before_{};
};

}  // namespace chorus::testing
