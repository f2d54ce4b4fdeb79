// Memory of one GPU, allocated from the driver as a whole and given out in blocks. An allocation by the driver for
// every tensor would stop the device's work. Other processes of the host map the whole arena by one handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices {

class GpuArena;

// A block of an arena, which it keeps alive.
class GpuMemory {
 public:
  GpuMemory(std::shared_ptr<GpuArena> arena, std::span<std::byte> bytes) : arena_(std::move(arena)), bytes_(bytes) {}
  ~GpuMemory();
  GpuMemory(GpuMemory const&) = delete;
  GpuMemory& operator=(GpuMemory const&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] GpuArena& arena() const { return *arena_; }

 private:
  std::shared_ptr<GpuArena> const arena_;
  std::span<std::byte> const bytes_;
};

// Thread-safe. Kept alive by its blocks; the GPU outlives it.
class GpuArena : public std::enable_shared_from_this<GpuArena> {
 public:
  static constexpr std::uint64_t alignment_bytes = 256;

  // Errors: GpuErrc::out_of_memory, lost.
  [[nodiscard]] static Result<std::shared_ptr<GpuArena>> reserve(Gpu& gpu, std::uint64_t bytes);
  ~GpuArena();
  GpuArena(GpuArena const&) = delete;
  GpuArena& operator=(GpuArena const&) = delete;

  // The contents are unspecified; size 0 is fine. Errors: GpuErrc::out_of_memory, with the sizes.
  [[nodiscard]] Result<std::shared_ptr<GpuMemory>> acquire(std::uint64_t bytes);

  [[nodiscard]] Gpu& gpu() const { return gpu_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return whole_; }
  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  friend class GpuMemory;
  GpuArena(Gpu& gpu, std::span<std::byte> whole);
  void give_back(std::byte const* data);

  Gpu& gpu_;
  std::span<std::byte> const whole_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset to size; adjacent ranges are merged
  std::map<std::uint64_t, std::uint64_t> used_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace chorus::devices
