// A device of PyTorch for tests ("privateuseone"), with memory of the host. What a thread fills is filled later, as by
// a GPU: when the stream in which it was queued is waited for, by an event or by a copy in that stream.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

namespace {

constexpr auto type = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

// The work of all streams. Any thread.
class Streams {
 public:
  void queue(c10::StreamId stream, std::function<void()> work) {
    std::lock_guard const lock(mutex_);
    work_[stream].push_back(std::move(work));
    ++queued_[stream];
  }
  std::uint64_t queued(c10::StreamId stream) {
    std::lock_guard const lock(mutex_);
    return queued_[stream];
  }
  // Does the work of a stream up to this number.
  void run(c10::StreamId stream, std::uint64_t until) {
    std::lock_guard const lock(mutex_);
    for (auto& work = work_[stream]; done_[stream] < until; ++done_[stream]) {
      work.front()();
      work.pop_front();
    }
  }

 private:
  std::recursive_mutex mutex_;
  std::map<c10::StreamId, std::deque<std::function<void()>>> work_;
  std::map<c10::StreamId, std::uint64_t> queued_, done_;
};

Streams& streams() {
  static Streams all;
  return all;
}

thread_local c10::StreamId current = 0;

void synchronize() { streams().run(current, streams().queued(current)); }

struct Event {
  c10::StreamId stream = 0;
  std::uint64_t queued = 0;
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return ::type; }
  c10::Device exchangeDevice(c10::Device) const override { return {::type, 0}; }
  c10::Device getDevice() const override { return {::type, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, device, current);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, 7);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), std::exchange(current, stream.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {stream.id(), streams().queued(stream.id())};
  }
  void block(void* event, const c10::Stream&) const override {
    auto const& recorded = *static_cast<Event*>(event);
    streams().run(recorded.stream, recorded.queued);
  }
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) const override {
    auto* const memory = std::malloc(bytes);
    return {memory, memory, &std::free, c10::Device(type, 0)};
  }
};
Allocator allocator;

// The tensor as one of the CPU, in the same memory.
at::Tensor on_host(at::Tensor const& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                 c10::optional<at::Device>, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &allocator, keys, dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout>, c10::optional<at::Device>, c10::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator, keys, dtype.value_or(at::kFloat));
}

at::Tensor copy_from(at::Tensor const& from, at::Tensor const& to, bool) {
  synchronize();
  on_host(to).copy_(on_host(from));
  return to;
}

at::Tensor& fill(at::Tensor& tensor, at::Scalar const& value) {
  streams().queue(current, [tensor, value] { on_host(tensor).fill_(value); });
  return tensor;
}

at::Tensor as_strided(at::Tensor const& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                      c10::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, sizes, strides, offset);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, kernels) {
  kernels.impl("empty.memory_format", &empty);
  kernels.impl("empty_strided", &empty_strided);
  kernels.impl("_copy_from", &copy_from);
  kernels.impl("fill_.Scalar", &fill);
  kernels.impl("as_strided", &as_strided);
}

// Nothing is differentiated.
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, all) { all.fallback(torch::CppFunction::makeFallthrough()); }

// Makes `stream` the one in which this thread queues.
void use_stream(std::int64_t stream) { current = stream; }

TORCH_LIBRARY(chorus_test, functions) { functions.def("use_stream", &use_stream); }

}  // namespace
