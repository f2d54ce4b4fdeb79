#include "worker/devices/cuda/runtime/cuda_session.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "worker/devices/cuda/kernels/kernels.hpp"
#include "worker/devices/cuda/runtime/cuda_error.hpp"

namespace chorus::devices::cuda {
namespace {

constexpr unsigned blocks_per_multiprocessor = 8;  // of a step or a conversion
// Number of marks of a lane that have events of their own. For an older mark, the later mark that has taken over its
// events is asked.
constexpr std::size_t marks_kept = 64;

// The work queued between two marks, with events at its beginning and its end.
struct MarkedWork {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  bool is_timed = false;
};

class CudaSession final : public Session {
 public:
  explicit CudaSession(GpuInfo const& info) : info_(info) {}

  Status open() override {
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

  Status fold(ReduceOp op, Dtype dtype, ReduceArguments const& to_reduce, Reducer::How how) override {
    if (to_reduce.source_count > sources_max || to_reduce.destination_count > destinations_max)
      return Error(GpuErrc::failed, "more operands than a kernel takes");
    if (auto const begun = begin(Lane::compute); !begun) return begun;
    FoldArguments arguments{};
    for (std::size_t s = 0; s < to_reduce.source_count; ++s) arguments.sources[s] = to_reduce.sources[s];
    for (std::size_t d = 0; d < to_reduce.destination_count; ++d) arguments.destinations[d] = to_reduce.destinations[d];
    arguments.elements = to_reduce.elements;
    arguments.source_count = static_cast<std::uint32_t>(to_reduce.source_count);
    arguments.destination_count = static_cast<std::uint32_t>(to_reduce.destination_count);
    arguments.divisor = op == ReduceOp::avg ? how.divisor : 1;
    arguments.scale = how.scale;
    arguments.contributions = how.contributions;
    arguments.single = how.single;
    arguments.is_weighted = how.weights != nullptr;
    for (std::size_t s = 0; how.weights != nullptr && s < to_reduce.source_count; ++s)
      arguments.weights[s] = how.weights[s];
    arguments.wide_source = how.wide_source;
    arguments.wide_results = how.wide_results;
    auto const result = launch_fold(static_cast<std::uint8_t>(op), static_cast<std::uint8_t>(dtype), arguments,
                                    of(Lane::compute).stream);
    if (result == -1)
      return Error(GpuErrc::failed,
                   std::string(name(op)) + " of " + std::string(name(dtype)) + " is not in this build");
    if (result != cudaSuccess) return error_of(info_, "a reduction", static_cast<cudaError_t>(result));
    auto const bytes = to_reduce.elements * element_bytes(dtype);
    of(Lane::compute).bytes += bytes;
    use_.folded_bytes += bytes * (to_reduce.source_count - 1);
    ++use_.kernels;
    return ok();
  }

  Status step(StepOrder const& order) override {
    if (auto const begun = begin(Lane::compute); !begun) return begun;
    auto const result = launch_step(order, info_.multiprocessors * blocks_per_multiprocessor, of(Lane::compute).stream);
    if (result == -1)
      return Error(GpuErrc::failed, "a step of " + std::string(name(order.dtype)) + " is not in this build");
    if (result != cudaSuccess) return error_of(info_, "a step", static_cast<cudaError_t>(result));
    auto const bytes = order.elements * element_bytes(order.wide_gradient ? Dtype::f32 : order.dtype);
    of(Lane::compute).bytes += bytes;
    use_.stepped_bytes += bytes;
    ++use_.kernels;
    return ok();
  }

  Status code(CodeOrder const& order) override {
    if (auto const begun = begin(Lane::compute); !begun) return begun;
    auto const result = launch_code(order, info_.multiprocessors * blocks_per_multiprocessor, of(Lane::compute).stream);
    if (result == -1)
      return Error(GpuErrc::failed,
                   std::string(name(order.dtype)) + " has no codes " + std::string(name(order.format)));
    if (result != cudaSuccess) return error_of(info_, "a conversion", static_cast<cudaError_t>(result));
    of(Lane::compute).bytes += order.elements * element_bytes(order.dtype);
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

  bool rests() override {
    return !use_device() || std::ranges::none_of(queues_, [](Queue const& queue) {
      return queue.stream != nullptr && cudaStreamQuery(queue.stream) == cudaErrorNotReady;
    });
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
    static_cast<void>(use());  // so that earlier work is not counted later
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

  // Prepares the queue for work. Records the begin event at the first work after a mark.
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

  // Counts finished work, once.
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

}  // namespace

std::unique_ptr<Session> make_session(GpuInfo const& info) { return std::make_unique<CudaSession>(info); }

}  // namespace chorus::devices::cuda
