// The interface to a GPU: memory, three queues of work, reductions, optimizer steps and codes of floats. Implemented by
// CUDA and, for tests, by a double in host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/devices/cuda/errc.hpp"
#include "worker/devices/cuda/kernels/code.hpp"
#include "worker/devices/cuda/kernels/step.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {

struct GpuInfo {
  std::uint32_t index = 0;  // as in "cuda:0"
  std::string name;
  std::string uuid;         // "GPU-8e7d..."
  std::string pci_address;  // "0000:17:00.0"
  std::uint64_t memory_bytes = 0;
  std::uint32_t multiprocessors = 0;
};

// A handle with which another process of the host maps an allocation. Sent as its bytes in memory.
using IpcHandle = std::array<std::byte, 64>;

// The queues of a session. Work of one queue runs in order, and concurrently with that of the others.
enum class Lane : std::uint8_t { in, compute, out };
inline constexpr std::size_t lane_count = 3;

// A point in a queue, which is reached when all work queued before it is done.
struct Mark {
  Lane lane = Lane::compute;
  std::uint64_t number = 0;  // 0: reached from the beginning
};

// Work of a session. The seconds are the busy times of the queues, as the device measured them.
struct GpuUse {
  std::uint64_t in_bytes = 0;
  std::uint64_t out_bytes = 0;
  std::uint64_t folded_bytes = 0;   // operands of reductions, except the first
  std::uint64_t stepped_bytes = 0;  // gradients of optimizer steps
  std::uint64_t kernels = 0;
  double in_seconds = 0;
  double out_seconds = 0;
  double compute_seconds = 0;
  // Read or written on other GPUs or in memory of other processes; counted by the caller that queued the work.
  std::uint64_t peer_bytes = 0;
  std::uint64_t nccl_bytes = 0;  // of tensors in NCCL's collectives; counted by the caller that queued them
};

// A busy time of a queue, for the trace of a run. Times count from the session's first work.
struct GpuSpan {
  Lane lane = Lane::compute;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;
};

// The queues of one user. Used by one thread at a time. Only the destructor waits, for queued work. Every error is
// GpuErrc::failed or lost, with the device and the driver's message.
class GpuSession {
 public:
  static constexpr std::size_t spans_max = 1024;

  GpuSession() = default;
  virtual ~GpuSession() = default;
  GpuSession(GpuSession const&) = delete;
  GpuSession& operator=(GpuSession const&) = delete;

  // Queues a copy. Both ends are GPU memory or pinned memory, which must stay until the work is done.
  [[nodiscard]] virtual Status copy(Lane lane, std::byte* to, std::byte const* from, std::uint64_t bytes) = 0;
  // Queues a reduction like Reducer::run on Lane::compute, over memory that this GPU can access.
  [[nodiscard]] virtual Status fold(ReduceOp op, Dtype dtype, ReduceArguments const& arguments, Reducer::How how) = 0;
  // Queues an optimizer step on Lane::compute. Errors: also GpuErrc::failed for integers.
  [[nodiscard]] virtual Status step(StepOrder const& order) = 0;
  // Queues a conversion on Lane::compute, with the bits of devices::Codec, except the payload of a NaN.
  [[nodiscard]] virtual Status code(CodeOrder const& order) = 0;

  // Returns the queue for a library that queues work of its own there before the next mark: a cudaStream_t, or, for a
  // double, a testing::DoubleQueue*.
  [[nodiscard]] virtual Result<void*> queue(Lane lane) = 0;

  [[nodiscard]] virtual Result<Mark> mark(Lane lane) = 0;
  // Work queued on the lane from now on begins after the mark.
  [[nodiscard]] virtual Status follow(Lane lane, Mark mark) = 0;
  [[nodiscard]] virtual Result<bool> reached(Mark mark) = 0;
  // Returns true if nothing is under way any more, so that the destructor would not wait.
  [[nodiscard]] virtual bool rests() = 0;

  [[nodiscard]] virtual GpuUse use() = 0;                  // of marks for which reached() has returned true
  [[nodiscard]] virtual std::vector<GpuSpan> spans() = 0;  // of the same marks, the first spans_max
  // Resets use() and spans() for another user. Requires that nothing is queued.
  virtual void start_over() = 0;
};

// Thread-safe. Outlives its sessions and its memory. Addresses are valid in this process, but only the device's work
// may access them. No call waits longer than two seconds for the holder of hold_still(): then calls that can fail fail
// with GpuErrc::failed, and free(), free_pinned() and close() leave the memory as it is.
class Gpu {
 public:
  Gpu() = default;
  virtual ~Gpu() = default;
  Gpu(Gpu const&) = delete;
  Gpu& operator=(Gpu const&) = delete;

  [[nodiscard]] virtual GpuInfo const& info() const = 0;
  // Returns the device's free memory.
  [[nodiscard]] virtual Result<std::uint64_t> free_bytes() = 0;

  // Aligned to 256 bytes. Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] virtual Result<std::byte*> allocate(std::uint64_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
  // Allocates pinned host memory. Errors: the same.
  [[nodiscard]] virtual Result<std::byte*> allocate_pinned(std::uint64_t bytes) = 0;
  virtual void free_pinned(std::byte* memory) = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<GpuSession>> session() = 0;

  // While the lock is held, no call makes the driver wait for a device, as allocations do. Needed to start kernels on
  // several GPUs that wait for each other: otherwise the driver might wait after it has started only some of them.
  // There is one lock for all GPUs of find_gpus(). The result holds no lock if such a call is running and does not end
  // soon.
  [[nodiscard]] virtual std::unique_lock<std::shared_timed_mutex> hold_still() = 0;

  // Makes a handle for memory of allocate(). Errors: GpuErrc::failed, if the system does not support handles.
  [[nodiscard]] virtual Result<IpcHandle> share(std::byte* memory) = 0;
  // Maps memory that another process shares. `bytes` is the size that it claims, which is checked with the driver.
  // Errors: GpuErrc::bad_handle.
  [[nodiscard]] virtual Result<std::byte*> open(IpcHandle const& handle, std::uint64_t bytes) = 0;
  virtual void close(std::byte* opened) = 0;
  // Lets this GPU's work read memory of the GPU with this UUID: of itself, or of a GPU that this process sees, with
  // peer access, which is enabled. Errors: GpuErrc::unavailable with the reason; out_of_memory.
  [[nodiscard]] virtual Status reach(std::string_view uuid) = 0;
  // Lets this GPU's work read and write the memory of another GPU of this process. Errors: as above.
  [[nodiscard]] virtual Status see(Gpu& other) = 0;
};

struct FoundGpus {
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::string why_none;  // one line, if there are none or some are left out
};

// Returns the GPUs that the driver shows and for which this build has code. A missing driver is no error.
[[nodiscard]] FoundGpus find_gpus();

}  // namespace chorus::devices
