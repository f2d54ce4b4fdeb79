#include "worker/devices/cuda/runtime/cuda_error.hpp"

namespace chorus::devices::cuda {
namespace {

GpuErrc kind_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return GpuErrc::out_of_memory;
    case cudaErrorDevicesUnavailable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorMpsRpcFailure:  // the MPS server has gone
    case cudaErrorMpsClientTerminated:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
#if CUDART_VERSION >= 13000  // not in every release of 12
    case cudaErrorContained:
#endif
      return GpuErrc::lost;
    default:
      return GpuErrc::failed;
  }
}

}  // namespace

Error error_of(GpuInfo const& info, char const* doing, cudaError_t error) {
  // Clears an error that is not sticky, so that the next call does not report it as its own.
  static_cast<void>(cudaGetLastError());
  return {kind_of(error), "cuda:" + std::to_string(info.index) + ": " + doing + ": " + cudaGetErrorName(error) + " (" +
                              cudaGetErrorString(error) + ")"};
}

}  // namespace chorus::devices::cuda
