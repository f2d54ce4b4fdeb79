// A management library for tests: a shared library of the path NVML_DOUBLE, with the functions of NVML and of an
// invented host, and those below. What it is told holds for the process.
#pragma once

namespace chorus::devices::testing {

enum class NvmlHost : int {
  p3_16xlarge,  // eight V100, a hybrid cube mesh of NVLinks: collectives/topology/dgx1.hpp
  hgx_h100,     // four H100, each with 18 NVLinks to four switches
  no_gpu,
  one_old_gpu,  // without NVLinks; the second one belongs to somebody else
};

// "nvml_double_be": the host that there is from now on; no call fails.
using BeHost = void(NvmlHost host);
// "nvml_double_fail": the call after the next `count` ones fails, all others do not. -1: none.
using FailAfter = void(int count);
// "nvml_double_calls": since the last of the two above.
using Calls = int();
// "nvml_double_open": initialised and not shut down.
using Open = int();

}  // namespace chorus::devices::testing
