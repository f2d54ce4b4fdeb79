// Memory of a benchmark's vectors: in the arena that other ranks see, on a GPU, or the process's own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::bench {

// Where memory is to lie: at most one of the two, which outlives it.
struct Place {
  memory::Arena* arena = nullptr;  // one without room is not used
  devices::GpuUnit* gpu = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  // Copies. Throws where a GPU has no room for it, or does not take the copy.
  Buffer(std::span<std::byte const> contents, Place place);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  // On a GPU, not to be looked at.
  [[nodiscard]] std::span<std::byte> bytes();
  [[nodiscard]] std::span<std::byte const> bytes() const { return const_cast<Buffer*>(this)->bytes(); }
  // Compares with its first bytes, wherever they lie.
  [[nodiscard]] bool holds(std::span<std::byte const> expected) const;

 private:
  Place place_;
  std::span<std::byte> shared_;
  std::shared_ptr<devices::GpuMemory> on_gpu_;
  std::vector<std::byte> own_;
};

}  // namespace chorus::bench
