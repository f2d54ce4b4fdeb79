// The session of a GPU double.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "worker/devices/cuda/testing/code_double.hpp"
#include "worker/devices/cuda/testing/double_queue.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/devices/cuda/testing/step_double.hpp"

namespace chorus::devices::testing {

// Work waits in its queue. Each call of reached() does one operation.
class DoubleSession final : public GpuSession {
 public:
  DoubleSession(GpuDouble& gpu, std::uint64_t seed) : gpu_(gpu), random_(seed) {
    for (auto& queue : queues_) queue.gpu = &gpu;
  }
  DoubleSession(DoubleSession const&) = delete;
  DoubleSession& operator=(DoubleSession const&) = delete;
  ~DoubleSession() override {
    while (!is_idle()) {
      if (!gpu_.is_lost()) gpu_.hangs_.wait(true);
      if (!do_one()) return;
    }
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

  bool rests() override {
    if (!gpu_.hangs_) static_cast<void>(do_one());
    return is_idle() || gpu_.is_lost();
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
  [[nodiscard]] bool is_idle() const {
    return std::ranges::all_of(queues_, [](Queue const& queue) { return queue.work.empty(); });
  }

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

}  // namespace chorus::devices::testing
