// The double of the management library, held open by a test.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include "worker/devices/nvml/testing/nvml_double.hpp"

namespace chorus::devices::testing {

class DoubleHost {
 public:
  explicit DoubleHost(NvmlHost host) : library_(dlopen(NVML_DOUBLE, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library_ != nullptr);
    function<BeHost>("nvml_double_be")(host);
  }
  ~DoubleHost() { static_cast<void>(dlclose(library_)); }
  DoubleHost(DoubleHost const&) = delete;
  DoubleHost& operator=(DoubleHost const&) = delete;

  void fail_after(int count) const { function<FailAfter>("nvml_double_fail")(count); }
  [[nodiscard]] int calls() const { return function<Calls>("nvml_double_calls")(); }
  [[nodiscard]] int open_sessions() const { return function<Open>("nvml_double_open")(); }

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
