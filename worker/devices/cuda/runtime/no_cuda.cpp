// find_gpus() of a build without the CUDA toolkit.
#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices {

FoundGpus find_gpus() {
  return {{}, "this build has no CUDA: it was made without the toolkit, or with CHORUS_CUDA=OFF"};
}

}  // namespace chorus::devices
