// Controls the double of the management library from a test.
#pragma once

#include "worker/devices/nvml/testing/nvml_double.hpp"
#include "worker/devices/testing/loaded_library.hpp"

namespace chorus::devices::testing {

class DoubleHost {
 public:
  explicit DoubleHost(NvmlHost host) : library_(NVML_DOUBLE) { library_.function<BeHost>("nvml_double_be")(host); }

  void fail_after(int count) const { library_.function<FailAfter>("nvml_double_fail")(count); }
  [[nodiscard]] int calls() const { return library_.function<Calls>("nvml_double_calls")(); }
  [[nodiscard]] int open_sessions() const { return library_.function<Open>("nvml_double_open")(); }

 private:
  LoadedLibrary const library_;
};

}  // namespace chorus::devices::testing
