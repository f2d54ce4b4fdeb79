#include "worker/devices/cuda/testing/gpu_double.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>

#include "worker/devices/cuda/testing/code_double.hpp"
#include "worker/devices/cuda/testing/double_queue.hpp"
#include "worker/devices/cuda/testing/step_double.hpp"

namespace chorus::devices::testing {
namespace {

constexpr std::uint64_t page = 4096;
constexpr int poison = 0xa5;

// The content of a double's IpcHandle.
struct Shared {
  std::uint64_t magic = 0;
  std::int64_t process = 0;
  std::int64_t file = -1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t uses_at = 0;  // in the file
};
constexpr std::uint64_t shared_magic = 0x656c62756f642121;
static_assert(sizeof(Shared) <= sizeof(IpcHandle));

// A page after the memory with numbers of allocations, by page of their offset. Other processes read it to see if the
// memory of a handle was freed.
constexpr std::uint64_t uses_bytes = page;
std::uint64_t place_of(std::uint64_t offset) { return offset / page % (uses_bytes / sizeof(std::uint64_t)); }

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

// Work waits in its queue. Each call of reached() does one operation.
class DoubleSession final : public GpuSession {
 public:
  DoubleSession(GpuDouble& gpu, std::uint64_t seed) : gpu_(gpu), random_(seed) {
    for (auto& queue : queues_) queue.gpu = &gpu;
  }
  DoubleSession(DoubleSession const&) = delete;
  DoubleSession& operator=(DoubleSession const&) = delete;
  ~DoubleSession() override {
    while (do_one()) {}
  }

  Status copy(Lane lane, std::byte* to, std::byte const* from, std::uint64_t bytes) override {
    if (auto const works = gpu_.work(); !works) return works;
    if (lane == Lane::in) use_.in_bytes += bytes;
    if (lane == Lane::out) use_.out_bytes += bytes;
    of(lane).work.push_back({[this, to, from, bytes] {
                               if (bytes != 0) std::memmove(gpu_.real(to, bytes), gpu_.real(from, bytes), bytes);
                             },
                             {},
                             {}});
    ++of(lane).queued;
    return ok();
  }

  Status fold(ReduceOp op, Dtype dtype, ReduceArguments const& arguments, Reducer::How how) override {
    if (auto const works = gpu_.work(); !works) return works;
    std::vector<std::byte const*> sources(arguments.sources, arguments.sources + arguments.source_count);
    std::vector<std::byte*> destinations(arguments.destinations, arguments.destinations + arguments.destination_count);
    std::vector<float> weights;
    if (how.weights != nullptr) weights.assign(how.weights, how.weights + arguments.source_count);
    auto const elements = arguments.elements;
    use_.folded_bytes += elements * element_bytes(dtype) * (sources.size() - 1);
    ++use_.kernels;
    of(Lane::compute)
        .work.push_back({[this, op, dtype, sources, destinations, elements, weights, how] {
                           auto weighed = how;
                           weighed.weights = weights.empty() ? nullptr : weights.data();
                           run(op, dtype, sources, destinations, elements, weighed);
                         },
                         {},
                         {}});
    ++of(Lane::compute).queued;
    return ok();
  }

  Status step(StepOrder const& order) override {
    if (auto const works = gpu_.work(); !works) return works;
    use_.stepped_bytes += order.elements * element_bytes(order.wide_gradient ? Dtype::f32 : order.dtype);
    ++use_.kernels;
    of(Lane::compute).work.push_back({[this, order] { take_step(behind(order)); }, {}, {}});
    ++of(Lane::compute).queued;
    return ok();
  }

  Status code(CodeOrder const& order) override {
    if (auto const works = gpu_.work(); !works) return works;
    ++use_.kernels;
    auto const real = [this](std::byte const* shown, std::uint64_t bytes) { return gpu_.real(shown, bytes); };
    of(Lane::compute).work.push_back({[real, order] { convert(order, real); }, {}, {}});
    ++of(Lane::compute).queued;
    return ok();
  }

  Result<void*> queue(Lane lane) override {
    if (auto const works = gpu_.work(); !works) return works.error();
    return static_cast<void*>(static_cast<DoubleQueue*>(&of(lane)));
  }

  Result<Mark> mark(Lane lane) override {
    if (auto const works = gpu_.work(); !works) return works.error();
    return Mark{lane, of(lane).queued};
  }

  Status follow(Lane lane, Mark mark) override {
    of(lane).work.push_back({{}, {}, mark});
    ++of(lane).queued;
    return ok();
  }

  Result<bool> reached(Mark mark) override {
    if (is_reached(mark)) return true;
    if (auto const works = gpu_.work(); !works) return works.error();
    if (!gpu_.hangs_) static_cast<void>(do_one());
    return is_reached(mark);
  }

  GpuUse use() override { return use_; }
  std::vector<GpuSpan> spans() override { return spans_; }
  void start_over() override {
    use_ = {};
    spans_.clear();
    clock_ = 0;
  }

 private:
  struct Work {
    std::function<void()> act;    // null: waits for the mark
    std::function<bool()> ready;  // null: at once
    Mark after;
  };
  struct Queue final : DoubleQueue {
    void push(std::function<bool()> ready, std::function<void()> act) override {
      work.push_back({std::move(act), std::move(ready), {}});
      ++queued;
    }
    std::byte* behind(std::byte const* memory, std::uint64_t bytes) override { return gpu->real(memory, bytes); }
    std::uint32_t device() override { return gpu->info().index; }

    GpuDouble* gpu = nullptr;
    std::deque<Work> work;
    std::uint64_t queued = 0;
    std::uint64_t done = 0;
  };
  Queue& of(Lane lane) { return queues_[static_cast<std::size_t>(lane)]; }
  bool is_reached(Mark mark) { return of(mark.lane).done >= mark.number; }

  // Does the next operation of a random queue that can go on. False if none can.
  bool do_one() {
    auto const from = random_() % lane_count;
    for (std::size_t i = 0; i < lane_count; ++i) {
      auto const lane = (from + i) % lane_count;
      auto& queue = queues_[lane];
      if (queue.work.empty()) continue;
      auto const& next = queue.work.front();
      if (!next.act && !is_reached(next.after)) continue;
      if (next.ready && !next.ready()) continue;
      if (next.act) {
        next.act();
        if (spans_.size() < spans_max) spans_.push_back({static_cast<Lane>(lane), clock_, clock_ + 1, 1});
        ++clock_;
      }
      queue.work.pop_front();
      ++queue.done;
      ++gpu_.operations_;
      return true;
    }
    return false;
  }

  void run(ReduceOp op, Dtype dtype, std::vector<std::byte const*> sources, std::vector<std::byte*> destinations,
           std::uint64_t elements, Reducer::How how) const {
    auto const narrow = elements * element_bytes(dtype);
    auto const wide = elements * sizeof(float);
    for (std::size_t s = 0; s < sources.size(); ++s)
      sources[s] = gpu_.real(sources[s], s == 0 && how.wide_source ? wide : narrow);
    for (auto& destination : destinations) destination = gpu_.real(destination, how.wide_results ? wide : narrow);
    Reducer(op, dtype).run({sources.data(), sources.size(), destinations.data(), destinations.size(), elements, false},
                           how);
  }

  // Returns the same order with accessible addresses.
  [[nodiscard]] StepOrder behind(StepOrder order) const {
    bool const is_half = order.dtype == Dtype::f16 || order.dtype == Dtype::bf16;
    auto const own = order.elements * element_bytes(order.dtype);
    auto const wide = is_half ? order.elements * sizeof(float) : own;
    order.values = gpu_.real(order.values, own);
    order.gradient = gpu_.real(order.gradient, order.wide_gradient ? wide : own);
    for (auto* const at : {&order.master, &order.first, &order.second})
      if (*at != nullptr) *at = gpu_.real(*at, wide);
    return order;
  }

  GpuDouble& gpu_;
  std::array<Queue, lane_count> queues_;
  std::minstd_rand random_;
  GpuUse use_;
  std::vector<GpuSpan> spans_;
  std::int64_t clock_ = 0;
};

GpuDouble::GpuDouble(std::uint32_t index, std::uint64_t memory_bytes, std::uint64_t seed) : seed_(seed) {
  info_.index = index;
  info_.name = "double";
  info_.uuid = "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(index);
  info_.pci_address = "0000:00:0" + std::to_string(index) + ".0";
  info_.memory_bytes = rounded(memory_bytes);
  info_.multiprocessors = 1;
  file_ = memfd_create("gpu-double", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(info_.memory_bytes + uses_bytes)) != 0)
    throw std::runtime_error("no memory for a double");
  own_ = map(file_, 0, info_.memory_bytes);
  uses_ = map(file_, info_.memory_bytes, uses_bytes);
}

GpuDouble::~GpuDouble() {
  unmap(own_);
  unmap(uses_);
  ::close(file_);
}

GpuDouble::Window GpuDouble::map(int file, std::uint64_t offset, std::uint64_t bytes) const {
  auto* const real = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  auto* const shown = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (real == MAP_FAILED || shown == MAP_FAILED) throw std::runtime_error("a double cannot be mapped");
  return {static_cast<std::byte*>(shown), static_cast<std::byte*>(real), bytes};
}

std::uint64_t& GpuDouble::uses(Window const& places, std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t*>(places.real)[place_of(offset)];
}

void GpuDouble::unmap(Window const& window) {
  munmap(window.shown, window.bytes);
  munmap(window.real, window.bytes);
}

void GpuDouble::fail_after(std::int64_t count, GpuErrc how) {
  std::scoped_lock lock(mutex_);
  until_failure_ = count;
  failure_ = how;
}

Status GpuDouble::work() {
  std::scoped_lock lock(mutex_);
  auto const name = "cuda:" + std::to_string(info_.index);
  if (lost_when_ != nullptr && *lost_when_) lost_ = true;
  if (lost_) return Error(GpuErrc::lost, name + ": the double was lost");
  if (until_failure_ < 0 || until_failure_-- > 0) return ok();
  if (failure_ == GpuErrc::lost) lost_ = true;
  return Error(failure_, name + ": the double was told to fail");
}

std::byte* GpuDouble::real(std::byte const* shown, std::uint64_t bytes) const {
  auto const within = [&](Window const& window) {
    return shown >= window.shown && shown + bytes <= window.shown + window.bytes;
  };
  if (within(own_)) return own_.real + (shown - own_.shown);
  std::scoped_lock lock(mutex_);
  for (auto const& [at, window] : opened_)
    if (within(window)) return window.real + (shown - window.shown);
  for (auto const* const other : seen_)
    if (within(other->own_)) return other->own_.real + (shown - other->own_.shown);
  return const_cast<std::byte*>(shown);
}

std::span<std::byte> GpuDouble::behind(std::span<std::byte const> memory) const {
  return {real(memory.data(), memory.size()), memory.size()};
}

Result<std::uint64_t> GpuDouble::free_bytes() {
  std::scoped_lock lock(mutex_);
  auto free = info_.memory_bytes;
  for (auto const& [offset, size] : used_) free -= size;
  return free;
}

Result<std::byte*> GpuDouble::allocate(std::uint64_t bytes) {
  std::shared_lock const moves(still_);
  std::scoped_lock lock(mutex_);
  if (lost_) return Error(GpuErrc::lost, "the double was lost");
  auto const size = rounded(std::max<std::uint64_t>(bytes, 1));
  std::uint64_t at = 0;
  for (auto const& [offset, used] : used_) {
    if (offset - at >= size) break;
    at = offset + used;
  }
  if (size > info_.memory_bytes - at)
    return Error(GpuErrc::out_of_memory, "cuda:" + std::to_string(info_.index) + ": no room for " +
                                             std::to_string(bytes) + " bytes in the double");
  used_.emplace(at, size);
  ++uses(uses_, at);
  ++allocations_;
  std::memset(own_.real + at, poison, size);
  return own_.shown + at;
}

void GpuDouble::free(std::byte* memory) {
  std::scoped_lock lock(mutex_);
  auto const used = used_.find(static_cast<std::uint64_t>(memory - own_.shown));
  if (used == used_.end()) throw std::logic_error("freed what was not allocated");
  std::memset(own_.real + used->first, poison, used->second);
  --uses(uses_, used->first);
  used_.erase(used);
}

Result<std::byte*> GpuDouble::allocate_pinned(std::uint64_t bytes) {
  std::shared_lock const moves(still_);
  auto* const memory = new std::byte[bytes];
  std::memset(memory, poison, bytes);
  return memory;
}

void GpuDouble::free_pinned(std::byte* memory) { delete[] memory; }

Result<std::unique_ptr<GpuSession>> GpuDouble::session() {
  if (auto const works = work(); !works) return works.error();
  return std::unique_ptr<GpuSession>(std::make_unique<DoubleSession>(*this, seed_));
}

Result<IpcHandle> GpuDouble::share(std::byte* memory) {
  if (!shares_) return Error(GpuErrc::failed, "cuda:" + std::to_string(info_.index) + ": the double shares nothing");
  std::scoped_lock lock(mutex_);
  auto const used = used_.find(static_cast<std::uint64_t>(memory - own_.shown));
  if (used == used_.end()) return Error(GpuErrc::failed, "shares what was not allocated");
  Shared const shared{shared_magic, getpid(), file_, used->first, used->second, info_.memory_bytes};
  IpcHandle handle{};
  std::memcpy(handle.data(), &shared, sizeof shared);
  return handle;
}

Result<std::byte*> GpuDouble::open(IpcHandle const& handle, std::uint64_t bytes) {
  Shared shared;
  std::memcpy(&shared, handle.data(), sizeof shared);
  auto const refuse = [&](std::string const& why) {
    return Error(GpuErrc::bad_handle, "cuda:" + std::to_string(info_.index) + ": " + why);
  };
  if (!why_not_open_.empty()) return Error(how_not_open_, refuse(why_not_open_).detail);
  if (shared.magic != shared_magic) return refuse("the handle is of no memory");
  if (bytes > shared.bytes)
    return refuse("the memory of the handle has " + std::to_string(shared.bytes) + " bytes, " + std::to_string(bytes) +
                  " were said to be there");
  auto const path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.file);
  auto const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return refuse("its owner has gone");
  auto const theirs = map(file, shared.uses_at, uses_bytes);
  bool const is_there = uses(theirs, shared.offset) != 0;
  unmap(theirs);
  auto const window = is_there ? map(file, shared.offset, shared.bytes) : Window();
  ::close(file);
  if (!is_there) return refuse("the memory of the handle was freed");
  std::scoped_lock lock(mutex_);
  opened_.emplace(window.shown, window);
  return window.shown;
}

std::size_t GpuDouble::opened() const {
  std::scoped_lock lock(mutex_);
  return opened_.size();
}

Status GpuDouble::reach(std::string_view uuid) {
  if (uuid == info_.uuid || std::find(neighbours_.begin(), neighbours_.end(), uuid) != neighbours_.end()) return ok();
  return Error(GpuErrc::unavailable,
               "cuda:" + std::to_string(info_.index) + ": the double has no peer access to " + std::string(uuid));
}

Status GpuDouble::see(Gpu& other) {
  auto const reaches = reach(other.info().uuid);
  if (!reaches || &other == this) return reaches;
  std::scoped_lock lock(mutex_);
  seen_.push_back(&dynamic_cast<GpuDouble const&>(other));
  return ok();
}

void GpuDouble::close(std::byte* opened) {
  std::scoped_lock lock(mutex_);
  auto const found = opened_.find(opened);
  if (found == opened_.end()) throw std::logic_error("closed what was not opened");
  unmap(found->second);
  opened_.erase(found);
}

}  // namespace chorus::devices::testing
