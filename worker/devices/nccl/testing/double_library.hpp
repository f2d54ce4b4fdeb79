// The double of NCCL, as a test tells it what to do.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include "worker/devices/nccl/testing/nccl_double.hpp"

namespace chorus::devices::testing {

class NcclDouble {
 public:
  NcclDouble() : library_(dlopen(NCCL_DOUBLE, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library_ != nullptr);
    function<Begin>("nccl_double_begin")();
  }
  ~NcclDouble() {
    function<Begin>("nccl_double_begin")();
    static_cast<void>(dlclose(library_));
  }
  NcclDouble(NcclDouble const&) = delete;
  NcclDouble& operator=(NcclDouble const&) = delete;

  void fail_after(int count) const { function<FailAfter>("nccl_double_fail")(count); }
  [[nodiscard]] int calls() const { return function<Calls>("nccl_double_calls")(); }
  void jam(bool says) const { function<Jam>("nccl_double_jam")(says); }
  void hold(bool holds) const { function<Hold>("nccl_double_hold")(holds); }
  [[nodiscard]] int open_communicators() const { return function<Open>("nccl_double_open")(); }
  [[nodiscard]] int collectives() const { return function<Collectives>("nccl_double_collectives")(); }
  [[nodiscard]] int stuck() const { return function<Stuck>("nccl_double_stuck")(); }

 private:
  template <class Function>
  [[nodiscard]] Function& function(char const* name) const {
    auto* const found = dlsym(library_, name);
    REQUIRE(found != nullptr);
    return *reinterpret_cast<Function*>(found);
  }

  void* const library_;
};

}  // namespace chorus::devices::testing
