// What a thread has queued on the streams of devices before it issues a call. The call runs in another thread, whose
// copies from and to these devices wait for it.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace chorus::process_group {

class Queued {
 public:
  // Null if all tensors are on the CPU. From the thread that has queued.
  static std::shared_ptr<Queued const> before(std::vector<at::Tensor> const& read,
                                              std::vector<at::Tensor> const& written) {
    std::vector<at::Device> devices;
    for (auto const* tensors : {&read, &written})
      for (auto const& tensor : *tensors)
        if (!tensor.device().is_cpu() && std::find(devices.begin(), devices.end(), tensor.device()) == devices.end())
          devices.push_back(tensor.device());
    return devices.empty() ? nullptr : std::make_shared<Queued const>(devices);
  }

  explicit Queued(std::vector<at::Device> const& devices) {
    for (auto const device : devices) {
      events_.emplace_back(device, c10::Event(device.type()));
      events_.back().second.record(current_stream(device));
    }
  }

  // Events are destroyed, and waited for, on their own device: going back from there to the device of a thread that has
  // none yet, number 0, would make a context there.
  ~Queued() {
    while (!events_.empty()) {
      try {
        c10::DeviceGuard const there(events_.back().first);
        events_.back().second = c10::Event(events_.back().first.type());
      } catch (...) {}  // the device has failed
      events_.pop_back();
    }
  }
  Queued(Queued const&) = delete;
  Queued& operator=(Queued const&) = delete;

  // Lets the streams of the calling thread wait.
  void wait() const {
    for (auto const& [device, event] : events_) {
      c10::DeviceGuard const there(device);
      event.block(current_stream(device));
    }
  }

 private:
  static c10::Stream current_stream(at::Device device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  }

  std::vector<std::pair<at::Device, c10::Event>> events_;
};

}  // namespace chorus::process_group
