// Memory of a benchmark's vectors: in the arena that other ranks see, on a GPU, or in the process.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::bench {

// Where to allocate: at most one of the two is set, and outlives the buffer.
struct Place {
  memory::Arena* arena = nullptr;  // ignored if it has no room
  devices::GpuUnit* gpu = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  // Copies the contents. Throws if a GPU has no room or refuses the copy.
  Buffer(std::span<std::byte const> contents, Place place);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  // On a GPU, must not be read.
  [[nodiscard]] std::span<std::byte> bytes();
  [[nodiscard]] std::span<std::byte const> bytes() const { return const_cast<Buffer*>(this)->bytes(); }
  // Compares `expected` with the first bytes, in whatever memory they are.
  [[nodiscard]] bool holds(std::span<std::byte const> expected) const;

 private:
  Place place_;
  std::span<std::byte> shared_;
  std::shared_ptr<devices::GpuMemory> on_gpu_;
  std::vector<std::byte> own_;
};

}  // namespace chorus::bench
