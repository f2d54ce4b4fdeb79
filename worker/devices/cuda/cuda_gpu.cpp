// A GPU through the CUDA runtime, which is linked statically and looks for the driver when it is first asked.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "worker/devices/cuda/cuda_peers.hpp"
#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/kernels.hpp"

namespace chorus::devices {
namespace {

constexpr unsigned blocks_per_multiprocessor = 8;  // of a step
// Marks of a lane that have a place of their own. An older one is answered for by the one that took its place, which
// comes later.
constexpr std::size_t marks_kept = 64;

// Starting what several GPUs do together takes less, and so do the calls that it keeps away, while everything works.
constexpr std::chrono::milliseconds patience_with_calls{100};
constexpr std::chrono::seconds patience_with_still{2};

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
    case cudaErrorMpsRpcFailure:  // its server has gone
    case cudaErrorMpsClientTerminated:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
#if CUDART_VERSION >= 13000  // it came with a release of 12
    case cudaErrorContained:
#endif
      return GpuErrc::lost;
    default:
      return GpuErrc::failed;
  }
}

Error error_of(GpuInfo const& info, char const* doing, cudaError_t error) {
  // What is not sticky is taken away, so that the next call does not report it as its own.
  static_cast<void>(cudaGetLastError());
  return {kind_of(error), "cuda:" + std::to_string(info.index) + ": " + doing + ": " + cudaGetErrorName(error) + " (" +
                              cudaGetErrorString(error) + ")"};
}

// An event at the beginning and one at the end of what was queued between two marks.
struct MarkedWork {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  bool is_timed = false;
};

class CudaSession final : public GpuSession {
 public:
  explicit CudaSession(GpuInfo const& info) : info_(info) {}

  Status open() {
    if (auto const made = use_device(); !made) return made;
    if (auto const e = cudaEventCreate(&epoch_); e != cudaSuccess) return error_of(info_, "cudaEventCreate", e);
    for (auto& queue : queues_) {
      if (auto const e = cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking); e != cudaSuccess)
        return error_of(info_, "cudaStreamCreate", e);
      for (auto& work : queue.marked) {
        auto const first = cudaEventCreate(&work.begin);
        auto const second = cudaEventCreate(&work.end);
        if (first != cudaSuccess || second != cudaSuccess)
          return error_of(info_, "cudaEventCreate", first != cudaSuccess ? first : second);
      }
    }
    return ok();
  }

  ~CudaSession() override {
    if (!use_device()) return;
    for (auto& queue : queues_) {
      if (queue.stream != nullptr) {
        static_cast<void>(cudaStreamSynchronize(queue.stream));
        static_cast<void>(cudaStreamDestroy(queue.stream));
      }
      for (auto& work : queue.marked) {
        if (work.begin != nullptr) static_cast<void>(cudaEventDestroy(work.begin));
        if (work.end != nullptr) static_cast<void>(cudaEventDestroy(work.end));
      }
    }
    if (epoch_ != nullptr) static_cast<void>(cudaEventDestroy(epoch_));
    static_cast<void>(cudaGetLastError());
  }

  Status copy(Lane lane, std::byte* to, std::byte const* from, std::uint64_t bytes) override {
    if (auto const begun = begin(lane); !begun) return begun;
    auto& queue = of(lane);
    if (auto const e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue.stream); e != cudaSuccess)
      return error_of(info_, "cudaMemcpyAsync", e);
    queue.bytes += bytes;
    if (lane == Lane::in) use_.in_bytes += bytes;
    if (lane == Lane::out) use_.out_bytes += bytes;
    return ok();
  }

  Status fold(ReduceOp op, Dtype dtype, Folding const& folding, Folder::How how) override {
    if (folding.source_count > cuda::sources_max || folding.destination_count > cuda::destinations_max)
      return Error(GpuErrc::failed, "more operands than a kernel takes");
    if (auto const begun = begin(Lane::compute); !begun) return begun;
    cuda::FoldArguments arguments{};
    for (std::size_t s = 0; s < folding.source_count; ++s) arguments.sources[s] = folding.sources[s];
    for (std::size_t d = 0; d < folding.destination_count; ++d) arguments.destinations[d] = folding.destinations[d];
    arguments.elements = folding.elements;
    arguments.source_count = static_cast<std::uint32_t>(folding.source_count);
    arguments.destination_count = static_cast<std::uint32_t>(folding.destination_count);
    arguments.divisor = op == ReduceOp::avg ? how.divisor : 1;
    arguments.wide_source = how.wide_source;
    arguments.wide_results = how.wide_results;
    auto const result = cuda::launch_fold(static_cast<std::uint8_t>(op), static_cast<std::uint8_t>(dtype), arguments,
                                          of(Lane::compute).stream);
    if (result == -1)
      return Error(GpuErrc::failed,
                   std::string(name(op)) + " of " + std::string(name(dtype)) + " is not in this build");
    if (result != cudaSuccess) return error_of(info_, "a reduction", static_cast<cudaError_t>(result));
    auto const bytes = folding.elements * element_bytes(dtype);
    of(Lane::compute).bytes += bytes;
    use_.folded_bytes += bytes * (folding.source_count - 1);
    ++use_.kernels;
    return ok();
  }

  Status step(StepOrder const& order) override {
    if (auto const begun = begin(Lane::compute); !begun) return begun;
    auto const result =
        cuda::launch_step(order, info_.multiprocessors * blocks_per_multiprocessor, of(Lane::compute).stream);
    if (result == -1)
      return Error(GpuErrc::failed, "a step of " + std::string(name(order.dtype)) + " is not in this build");
    if (result != cudaSuccess) return error_of(info_, "a step", static_cast<cudaError_t>(result));
    auto const bytes = order.elements * element_bytes(order.wide_gradient ? Dtype::f32 : order.dtype);
    of(Lane::compute).bytes += bytes;
    use_.stepped_bytes += bytes;
    ++use_.kernels;
    return ok();
  }

  Result<void*> queue(Lane lane) override {
    if (auto const begun = begin(lane); !begun) return begun.error();
    return static_cast<void*>(of(lane).stream);
  }

  Result<Mark> mark(Lane lane) override {
    if (auto const made = use_device(); !made) return made.error();
    auto& queue = of(lane);
    auto const number = ++queue.number;
    auto& work = queue.marked[number % marks_kept];
    if (!queue.has_begun) account(queue, lane, work);
    work.number = number;
    work.is_timed = std::exchange(queue.has_begun, false);
    work.bytes = std::exchange(queue.bytes, 0);
    if (auto const e = cudaEventRecord(work.end, queue.stream); e != cudaSuccess)
      return error_of(info_, "cudaEventRecord", e);
    return Mark{lane, number};
  }

  Status follow(Lane lane, Mark mark) override {
    if (mark.number == 0) return ok();
    if (auto const made = use_device(); !made) return made;
    auto const& work = of(mark.lane).marked[mark.number % marks_kept];
    if (auto const e = cudaStreamWaitEvent(of(lane).stream, work.end, 0); e != cudaSuccess)
      return error_of(info_, "cudaStreamWaitEvent", e);
    return ok();
  }

  Result<bool> reached(Mark mark) override {
    if (mark.number == 0) return true;
    if (auto const made = use_device(); !made) return made.error();
    auto& queue = of(mark.lane);
    auto& work = queue.marked[mark.number % marks_kept];
    auto const e = cudaEventQuery(work.end);
    if (e == cudaErrorNotReady) return false;
    if (e != cudaSuccess) return error_of(info_, "what was queued", e);
    account(queue, mark.lane, work);
    return true;
  }

  GpuUse use() override {
    for (std::size_t lane = 0; lane < lane_count; ++lane)
      for (auto& work : queues_[lane].marked) account(queues_[lane], static_cast<Lane>(lane), work);
    return use_;
  }

  std::vector<GpuSpan> spans() override {
    static_cast<void>(use());
    return spans_;
  }

  void start_over() override {
    static_cast<void>(use());  // so that nothing of the past is counted later
    use_ = {};
    spans_.clear();
    is_epoch_recorded_ = false;
  }

 private:
  struct Queue {
    cudaStream_t stream = nullptr;
    std::array<MarkedWork, marks_kept> marked;
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    bool has_begun = false;
  };

  Queue& of(Lane lane) { return queues_[static_cast<std::size_t>(lane)]; }

  // The device is a property of the calling thread.
  [[nodiscard]] Status use_device() const {
    if (auto const e = cudaSetDevice(static_cast<int>(info_.index)); e != cudaSuccess)
      return error_of(info_, "cudaSetDevice", e);
    return ok();
  }

  // The first work after a mark is where its time begins.
  [[nodiscard]] Status begin(Lane lane) {
    if (auto const made = use_device(); !made) return made;
    auto& queue = of(lane);
    if (queue.has_begun) return ok();
    auto& work = queue.marked[(queue.number + 1) % marks_kept];
    account(queue, lane, work);
    queue.has_begun = true;
    if (!is_epoch_recorded_) {
      is_epoch_recorded_ = true;
      if (auto const e = cudaEventRecord(epoch_, queue.stream); e != cudaSuccess)
        return error_of(info_, "cudaEventRecord", e);
    }
    if (auto const e = cudaEventRecord(work.begin, queue.stream); e != cudaSuccess)
      return error_of(info_, "cudaEventRecord", e);
    return ok();
  }

  // Counts what is done, once.
  void account(Queue& queue, Lane lane, MarkedWork& work) {
    bool const is_open = queue.has_begun && &work == &queue.marked[(queue.number + 1) % marks_kept];
    if (!work.is_timed || is_open || cudaEventQuery(work.end) != cudaSuccess) return;
    work.is_timed = false;
    float since_epoch_ms = 0, took_ms = 0;
    if (cudaEventElapsedTime(&took_ms, work.begin, work.end) != cudaSuccess ||
        cudaEventElapsedTime(&since_epoch_ms, epoch_, work.begin) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return;
    }
    auto const seconds = static_cast<double>(took_ms) * 1e-3;
    (lane == Lane::in ? use_.in_seconds : lane == Lane::out ? use_.out_seconds : use_.compute_seconds) += seconds;
    if (spans_.size() == spans_max) return;
    auto const begin_ns = static_cast<std::int64_t>(static_cast<double>(since_epoch_ms) * 1e6);
    spans_.push_back({lane, begin_ns, begin_ns + static_cast<std::int64_t>(seconds * 1e9), work.bytes});
  }

  GpuInfo const& info_;
  std::array<Queue, lane_count> queues_;
  cudaEvent_t epoch_ = nullptr;
  bool is_epoch_recorded_ = false;
  GpuUse use_;
  std::vector<GpuSpan> spans_;
};

class CudaGpu final : public Gpu {
 public:
  CudaGpu(GpuInfo info, std::vector<cuda::Neighbour> neighbours, std::shared_ptr<std::shared_timed_mutex> waiting)
      : info_(std::move(info)), neighbours_(std::move(neighbours)), waiting_(std::move(waiting)) {}

  GpuInfo const& info() const override { return info_; }

  Result<std::uint64_t> free_bytes() override {
    std::size_t free = 0, total = 0;
    if (auto const e = on_device([&] { return cudaMemGetInfo(&free, &total); }); e != cudaSuccess)
      return error_of(info_, "cudaMemGetInfo", e);
    return static_cast<std::uint64_t>(free);
  }

  Result<std::byte*> allocate(std::uint64_t bytes) override {
    void* memory = nullptr;
    if (auto const e = on_device([&] { return cudaMalloc(&memory, bytes); }); e != cudaSuccess)
      return error_of(info_, ("cudaMalloc of " + std::to_string(bytes) + " bytes").c_str(), e);
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) override {
    static_cast<void>(on_device([&] { return cudaFree(memory); }));
  }

  Result<std::byte*> allocate_pinned(std::uint64_t bytes) override {
    std::shared_lock const lock(*waiting_, patience_with_still);
    if (!lock) return held_still();
    void* memory = nullptr;
    if (auto const e = now_on_device([&] { return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); });
        e != cudaSuccess)
      return error_of(info_, ("cudaHostAlloc of " + std::to_string(bytes) + " bytes").c_str(), e);
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) override {
    static_cast<void>(on_device([&] { return cudaFreeHost(memory); }));
  }

  Result<std::unique_ptr<GpuSession>> session() override {
    auto session = std::make_unique<CudaSession>(info_);
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
    if (auto const e = on_device([&] { return cudaIpcGetMemHandle(&handle, memory); }); e != cudaSuccess)
      return error_of(info_, "cudaIpcGetMemHandle", e);
    IpcHandle shared;
    std::memcpy(shared.data(), &handle, sizeof handle);
    return shared;
  }

  Result<std::byte*> open(IpcHandle const& handle, std::uint64_t bytes) override {
    cudaIpcMemHandle_t theirs;
    std::memcpy(&theirs, handle.data(), sizeof theirs);
    void* memory = nullptr;
    auto const e = on_device([&] { return cudaIpcOpenMemHandle(&memory, theirs, cudaIpcMemLazyEnablePeerAccess); });
    if (e != cudaSuccess) {
      auto error = error_of(info_, "cudaIpcOpenMemHandle", e);
      bool const may_pass =
          e == cudaErrorMemoryAllocation || e == cudaErrorMapBufferObjectFailed || error.code == GpuErrc::lost;
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
    static_cast<void>(on_device([&] { return cudaIpcCloseMemHandle(opened); }));
  }
  Status reach(std::string_view uuid) override {
    std::shared_lock const lock(*waiting_);
    return cuda::reach(info_, neighbours_, uuid);
  }
  Status see(Gpu& other) override { return reach(other.info().uuid); }

 private:
  // From here to the end of its allocation, as the driver knows it: the runtime has no call for that.
  [[nodiscard]] Result<std::uint64_t> bytes_from(std::byte* at) const {
    using AddressRange = int (*)(unsigned long long* base, std::size_t* size, unsigned long long pointer);
    void* found = nullptr;
    cudaDriverEntryPointQueryResult answer{};
    auto const e = on_device([&] {
      return cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, 12000, cudaEnableDefault, &answer);
    });
    if (e != cudaSuccess) return error_of(info_, "cudaGetDriverEntryPoint", e);
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
  cudaError_t on_device(Call const& call) const {
    std::shared_lock const lock(*waiting_);
    return now_on_device(call);
  }
  template <class Call>
  cudaError_t now_on_device(Call const& call) const {
    auto const e = cudaSetDevice(static_cast<int>(info_.index));
    return e != cudaSuccess ? e : call();
  }

  GpuInfo const info_;
  std::vector<cuda::Neighbour> const neighbours_;
  std::shared_ptr<std::shared_timed_mutex> const waiting_;  // for a device: one for all GPUs, which share it
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
