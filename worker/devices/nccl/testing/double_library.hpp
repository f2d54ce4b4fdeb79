// Controls the double of NCCL from a test.
#pragma once

#include "worker/devices/nccl/testing/nccl_double.hpp"
#include "worker/devices/testing/loaded_library.hpp"

namespace chorus::devices::testing {

class NcclDouble {
 public:
  NcclDouble() : library_(NCCL_DOUBLE) { library_.function<Begin>("nccl_double_begin")(); }
  ~NcclDouble() { library_.function<Begin>("nccl_double_begin")(); }
  NcclDouble(NcclDouble const&) = delete;
  NcclDouble& operator=(NcclDouble const&) = delete;

  void fail_after(int count) const { library_.function<FailAfter>("nccl_double_fail")(count); }
  [[nodiscard]] int calls() const { return library_.function<Calls>("nccl_double_calls")(); }
  void jam(bool says) const { library_.function<Jam>("nccl_double_jam")(says); }
  void hold(bool holds) const { library_.function<Hold>("nccl_double_hold")(holds); }
  [[nodiscard]] int open_communicators() const { return library_.function<Open>("nccl_double_open")(); }
  [[nodiscard]] int collectives() const { return library_.function<Collectives>("nccl_double_collectives")(); }
  [[nodiscard]] int stuck() const { return library_.function<Stuck>("nccl_double_stuck")(); }

 private:
  LoadedLibrary const library_;
};

}  // namespace chorus::devices::testing
