// GPU memory of a client program that it shares with the worker: a part of the allocation that its IPC handle names.
//
// The driver tells the size of the allocation. If a client frees it while it is registered, it takes away memory in
// use: what CUDA does then is undefined.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/memory/regions/region.hpp"

namespace chorus::service {

// 64 bytes in base64, as cudaIpcGetMemHandle returns them.
[[nodiscard]] std::optional<devices::IpcHandle> parse_handle(std::string_view base64);

// Immovable; shared between threads. The unit outlives the region.
class GpuRegion final : public memory::Region {
 public:
  struct Part {
    devices::IpcHandle handle{};
    std::uint64_t offset = 0;  // in the allocation of the handle
    std::uint64_t bytes = 0;
    friend bool operator==(Part const&, Part const&) = default;
  };
  // Errors: GpuErrc::bad_handle, also for a part that ends beyond the allocation; GpuErrc::lost.
  [[nodiscard]] static Result<std::shared_ptr<GpuRegion const>> open(std::string name, devices::GpuUnit& gpu,
                                                                     Part part);
  GpuRegion(std::string name, devices::GpuUnit& gpu, Part part, std::byte* opened)
      : name_(std::move(name)), gpu_(gpu), part_(part), opened_(opened) {}
  ~GpuRegion() override { gpu_.gpu().close(opened_); }

  [[nodiscard]] std::string const& name() const override { return name_; }
  [[nodiscard]] std::span<std::byte> bytes() const override { return {opened_ + part_.offset, part_.bytes}; }
  [[nodiscard]] std::optional<std::string> damage() const override { return gpu_.lost(); }

  [[nodiscard]] devices::GpuUnit& gpu() const { return gpu_; }
  [[nodiscard]] Part const& part() const { return part_; }

 private:
  std::string const name_;
  devices::GpuUnit& gpu_;
  Part const part_;
  std::byte* const opened_;
};

}  // namespace chorus::service
