// Gpu by the CUDA runtime, which is linked statically and loads the driver at its first call.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "worker/devices/cuda/architectures.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/runtime/cuda_error.hpp"
#include "worker/devices/cuda/runtime/cuda_peers.hpp"
#include "worker/devices/cuda/runtime/cuda_session.hpp"

namespace chorus::devices {
namespace {

// Limits of waiting for hold_still() and for a holder of it. Both take less time on devices that work.
constexpr std::chrono::milliseconds patience_with_calls{100};
constexpr std::chrono::seconds patience_with_still{2};

class CudaGpu final : public Gpu {
 public:
  CudaGpu(GpuInfo info, std::vector<cuda::Neighbour> neighbours, std::shared_ptr<std::shared_timed_mutex> waiting)
      : info_(std::move(info)), neighbours_(std::move(neighbours)), waiting_(std::move(waiting)) {}

  GpuInfo const& info() const override { return info_; }

  Result<std::uint64_t> free_bytes() override {
    std::size_t free = 0, total = 0;
    if (auto const asked = on_device("cudaMemGetInfo", [&] { return cudaMemGetInfo(&free, &total); }); !asked)
      return asked.error();
    return static_cast<std::uint64_t>(free);
  }

  Result<std::byte*> allocate(std::uint64_t bytes) override {
    void* memory = nullptr;
    auto const what = "cudaMalloc of " + std::to_string(bytes) + " bytes";
    if (auto const made = on_device(what.c_str(), [&] { return cudaMalloc(&memory, bytes); }); !made)
      return made.error();
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) override {
    static_cast<void>(on_device("cudaFree", [&] { return cudaFree(memory); }));
  }

  Result<std::byte*> allocate_pinned(std::uint64_t bytes) override {
    void* memory = nullptr;
    auto const what = "cudaHostAlloc of " + std::to_string(bytes) + " bytes";
    auto const allocate = [&] { return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); };
    if (auto const made = on_device(what.c_str(), allocate); !made) return made.error();
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) override {
    static_cast<void>(on_device("cudaFreeHost", [&] { return cudaFreeHost(memory); }));
  }

  Result<std::unique_ptr<GpuSession>> session() override {
    auto session = cuda::make_session(info_);
    std::shared_lock const lock(*waiting_, patience_with_still);
    if (!lock) return held_still();
    if (auto const opened = session->open(); !opened) return opened.error();
    return std::unique_ptr<GpuSession>(std::move(session));
  }

  std::unique_lock<std::shared_timed_mutex> hold_still() override {
    return std::unique_lock(*waiting_, patience_with_calls);
  }

  Result<IpcHandle> share(std::byte* memory) override {
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof(IpcHandle));
    auto const make = [&] { return cudaIpcGetMemHandle(&handle, memory); };
    if (auto const made = on_device("cudaIpcGetMemHandle", make); !made) return made.error();
    IpcHandle shared;
    std::memcpy(shared.data(), &handle, sizeof handle);
    return shared;
  }

  Result<std::byte*> open(IpcHandle const& handle, std::uint64_t bytes) override {
    cudaIpcMemHandle_t theirs;
    std::memcpy(&theirs, handle.data(), sizeof theirs);
    void* memory = nullptr;
    auto e = cudaSuccess;
    auto const map = [&] { return e = cudaIpcOpenMemHandle(&memory, theirs, cudaIpcMemLazyEnablePeerAccess); };
    if (auto const mapped = on_device("cudaIpcOpenMemHandle", map); !mapped) {
      auto error = mapped.error();
      bool const may_pass = e == cudaSuccess || e == cudaErrorMemoryAllocation || e == cudaErrorMapBufferObjectFailed ||
                            error.code == GpuErrc::lost;
      if (!may_pass) error.code = GpuErrc::bad_handle;
      return error;
    }
    auto* const at = static_cast<std::byte*>(memory);
    auto const there = bytes_from(at);
    if (there.has_error() || *there < bytes) {
      close(at);
      if (there.has_error()) return there.error();
      return Error(GpuErrc::bad_handle, "cuda:" + std::to_string(info_.index) + ": the memory of the handle has " +
                                            std::to_string(*there) + " bytes, " + std::to_string(bytes) +
                                            " were said to be there");
    }
    return at;
  }
  void close(std::byte* opened) override {
    static_cast<void>(on_device("cudaIpcCloseMemHandle", [&] { return cudaIpcCloseMemHandle(opened); }));
  }
  Status reach(std::string_view uuid) override {
    std::shared_lock const lock(*waiting_, patience_with_still);
    if (!lock) return held_still();
    return cuda::reach(info_, neighbours_, uuid);
  }
  Status see(Gpu& other) override { return reach(other.info().uuid); }

 private:
  // Returns the bytes from `at` to the end of its allocation. Asks the driver, because the runtime has no such call.
  [[nodiscard]] Result<std::uint64_t> bytes_from(std::byte* at) const {
    using AddressRange = int (*)(unsigned long long* base, std::size_t* size, unsigned long long pointer);
    void* found = nullptr;
    cudaDriverEntryPointQueryResult answer{};
    auto const asked = on_device("cudaGetDriverEntryPoint", [&] {
      return cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, 12000, cudaEnableDefault, &answer);
    });
    if (!asked) return asked.error();
    auto const pointer = reinterpret_cast<unsigned long long>(at);
    unsigned long long base = 0;
    std::size_t size = 0;
    if (found == nullptr || reinterpret_cast<AddressRange>(found)(&base, &size, pointer) != 0)
      return Error(GpuErrc::bad_handle, "cuda:" + std::to_string(info_.index) + ": the driver knows no such memory");
    return base + size - pointer;
  }

  [[nodiscard]] Error held_still() const {
    return {GpuErrc::failed, "cuda:" + std::to_string(info_.index) + ": NCCL has had the GPUs to itself for too long"};
  }

  template <class Call>
  [[nodiscard]] Status on_device(char const* what, Call const& call) const {
    std::shared_lock const lock(*waiting_, patience_with_still);
    if (!lock) return held_still();
    auto e = cudaSetDevice(static_cast<int>(info_.index));
    if (e == cudaSuccess) e = call();
    if (e != cudaSuccess) return cuda::error_of(info_, what, e);
    return ok();
  }

  GpuInfo const info_;
  std::vector<cuda::Neighbour> const neighbours_;
  std::shared_ptr<std::shared_timed_mutex> const waiting_;  // of hold_still(); one for all GPUs
};

}  // namespace

FoundGpus find_gpus() {
  int count = 0;
  if (auto const e = cudaGetDeviceCount(&count); e != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return {{}, std::string("no GPU: ") + cudaGetErrorString(e)};
  }
  FoundGpus found;
  std::vector<GpuInfo> infos;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (auto const e = cudaGetDeviceProperties(&properties, device); e != cudaSuccess) {
      found.why_none = std::string("no GPU: ") + cudaGetErrorString(e);
      continue;
    }
    if (!has_code_for(CHORUS_CUDA_BUILT_FOR, properties.major, properties.minor)) {
      found.why_none += (found.why_none.empty() ? "cuda:" : "; cuda:") + std::to_string(device) + " (" +
                        properties.name + ") is left out: it has compute capability " +
                        std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                        ", and this build has code for " CHORUS_CUDA_BUILT_FOR " (CHORUS_CUDA_ARCHITECTURES)";
      continue;
    }
    char address[32];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.0", static_cast<unsigned>(properties.pciDomainID),
                  static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
    infos.push_back({static_cast<std::uint32_t>(device), properties.name, cuda::uuid_text(properties.uuid), address,
                     properties.totalGlobalMem, static_cast<std::uint32_t>(properties.multiProcessorCount)});
  }
  auto const waiting = std::make_shared<std::shared_timed_mutex>();
  for (auto const& info : infos) {
    std::vector<cuda::Neighbour> neighbours;
    for (auto const& other : infos)
      if (other.index != info.index) neighbours.push_back({other.index, other.uuid});
    found.gpus.push_back(std::make_unique<CudaGpu>(info, std::move(neighbours), waiting));
  }
  if (found.gpus.empty() && found.why_none.empty()) found.why_none = "no GPU: the driver shows none to this process";
  return found;
}

}  // namespace chorus::devices
