// A GPU as the rest of the worker sees it: memory, three queues of work, reductions, and steps of optimizers. CUDA is
// behind it, or, in tests, a double in the host's memory.
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
#include "worker/devices/cuda/step.hpp"
#include "worker/devices/fold.hpp"

namespace chorus::devices {

struct GpuInfo {
  std::uint32_t index = 0;  // as in "cuda:0"
  std::string name;
  std::string uuid;         // "GPU-8e7d..."
  std::string pci_address;  // "0000:17:00.0"
  std::uint64_t memory_bytes = 0;
  std::uint32_t multiprocessors = 0;
};

// How another process of the host finds an allocation. Travels as it lies in memory.
using IpcHandle = std::array<std::byte, 64>;

// The queues of a session: what is in one is done in order, and beside the others.
enum class Lane : std::uint8_t { in, compute, out };
inline constexpr std::size_t lane_count = 3;

// A moment in a queue: reached when everything that was queued before it is done.
struct Mark {
  Lane lane = Lane::compute;
  std::uint64_t number = 0;  // 0: reached from the beginning
};

// What a session has done; the seconds are those that each queue was at work, as the device measured them.
struct GpuUse {
  std::uint64_t in_bytes = 0;
  std::uint64_t out_bytes = 0;
  std::uint64_t folded_bytes = 0;   // of operands that were combined with others
  std::uint64_t stepped_bytes = 0;  // of gradients by which an optimizer stepped
  std::uint64_t kernels = 0;
  double in_seconds = 0;
  double out_seconds = 0;
  double compute_seconds = 0;
  // Read or written where they lie on other GPUs, or in memory of other processes: counted by who queued it.
  std::uint64_t peer_bytes = 0;
  std::uint64_t nccl_bytes = 0;  // of tensors that NCCL added or passed on: counted by who queued it
};

// When a queue was at work, for a picture of a run: from the session's first work on.
struct GpuSpan {
  Lane lane = Lane::compute;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;
};

// Queues of one user. One thread at a time. Nothing here waits but the destructor, for what is queued. Every error is
// GpuErrc::failed or lost, with the device and what the driver says.
class GpuSession {
 public:
  static constexpr std::size_t spans_max = 1024;

  GpuSession() = default;
  virtual ~GpuSession() = default;
  GpuSession(GpuSession const&) = delete;
  GpuSession& operator=(GpuSession const&) = delete;

  // Both ends are memory of a GPU or pinned, and stay until the work is done.
  [[nodiscard]] virtual Status copy(Lane lane, std::byte* to, std::byte const* from, std::uint64_t bytes) = 0;
  // On Lane::compute; as Folder::run, with memory that this GPU reads and writes.
  [[nodiscard]] virtual Status fold(ReduceOp op, Dtype dtype, Folding const& folding, Folder::How how) = 0;
  // On Lane::compute. Errors: also GpuErrc::failed for integers.
  [[nodiscard]] virtual Status step(StepOrder const& order) = 0;

  // The queue itself, for a library that queues work of its own there, before the next mark: a cudaStream_t, or, of a
  // double, a testing::DoubleQueue*.
  [[nodiscard]] virtual Result<void*> queue(Lane lane) = 0;

  [[nodiscard]] virtual Result<Mark> mark(Lane lane) = 0;
  // What is queued on the lane from now on begins after the mark.
  [[nodiscard]] virtual Status follow(Lane lane, Mark mark) = 0;
  [[nodiscard]] virtual Result<bool> reached(Mark mark) = 0;

  [[nodiscard]] virtual GpuUse use() = 0;                  // of marks that were seen to be reached
  [[nodiscard]] virtual std::vector<GpuSpan> spans() = 0;  // of these, the first spans_max
  // For another user, with nothing queued: use and spans begin anew.
  virtual void start_over() = 0;
};

// Thread-safe. Outlives its sessions and its memory. Addresses are this process's, and only the device's work may look
// there.
class Gpu {
 public:
  Gpu() = default;
  virtual ~Gpu() = default;
  Gpu(Gpu const&) = delete;
  Gpu& operator=(Gpu const&) = delete;

  [[nodiscard]] virtual GpuInfo const& info() const = 0;
  // What is not given to anybody on the device.
  [[nodiscard]] virtual Result<std::uint64_t> free_bytes() = 0;

  // Aligned to 256 bytes. Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] virtual Result<std::byte*> allocate(std::uint64_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
  // Host memory that the device copies from and to by itself. Errors: the same.
  [[nodiscard]] virtual Result<std::byte*> allocate_pinned(std::uint64_t bytes) = 0;
  virtual void free_pinned(std::byte* memory) = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<GpuSession>> session() = 0;

  // While it is held, no call here makes the driver wait for a device, as allocations do: for whoever starts kernels on
  // several GPUs that wait for each other, of which the driver might otherwise start some and then wait for them. One
  // for all GPUs of find_gpus(). Not held where such a call is under way and does not end within moments.
  [[nodiscard]] virtual std::unique_lock<std::shared_timed_mutex> hold_still() = 0;

  // Of what allocate() gave. Errors: GpuErrc::failed, where the system has no such handles.
  [[nodiscard]] virtual Result<IpcHandle> share(std::byte* memory) = 0;
  // Maps what another process shares; `bytes` is what it says it has, which is held against what the driver says.
  // Errors: GpuErrc::bad_handle.
  [[nodiscard]] virtual Result<std::byte*> open(IpcHandle const& handle, std::uint64_t bytes) = 0;
  virtual void close(std::byte* opened) = 0;
  // Whether what works here may read memory of the GPU with this UUID: of this one, or of a neighbour that this process
  // sees and that has peer access, which this turns on. Errors: GpuErrc::unavailable, with the reason; out_of_memory.
  [[nodiscard]] virtual Status reach(std::string_view uuid) = 0;
  // What works here may from now on read and write the memory of another GPU of this process where it lies. Errors: as
  // above.
  [[nodiscard]] virtual Status see(Gpu& other) = 0;
};

struct FoundGpus {
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::string why_none;  // one line, if there are none
};

// The host's, as the driver shows them to this process. No driver is an answer, not an error.
[[nodiscard]] FoundGpus find_gpus();

}  // namespace chorus::devices
