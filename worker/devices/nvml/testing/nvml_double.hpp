// A double of the management library: a shared library at the path NVML_DOUBLE, with the functions of NVML for an
// invented host, and the functions below, which control it for the whole process.
#pragma once

namespace chorus::devices::testing {

enum class NvmlHost : int {
  p3_16xlarge,  // eight V100, a hybrid cube mesh of NVLinks: collectives/topology/dgx1.hpp
  hgx_h100,     // four H100, each with 18 NVLinks to four switches
  no_gpu,
  one_old_gpu,  // without NVLinks; a second GPU is not accessible to this process
};

// "nvml_double_be": sets the host; no call fails.
using BeHost = void(NvmlHost host);
// "nvml_double_fail": only the call after the next `count` ones fails. -1: none.
using FailAfter = void(int count);
// "nvml_double_calls": number of calls since the last call of one of the two functions above.
using Calls = int();
// "nvml_double_open": number of initialisations without shutdown.
using Open = int();

}  // namespace chorus::devices::testing
