// Memory of a benchmark's vectors: in the arena that other ranks see, or the process's own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "worker/memory/arena.hpp"

namespace chorus::bench {

class Buffer {
 public:
  Buffer() = default;
  // Copies. The arena, if there is one, outlives the buffer; an arena without room is not used.
  Buffer(std::span<std::byte const> contents, memory::Arena* arena);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() { return shared_.empty() ? std::span(own_) : shared_; }
  [[nodiscard]] std::span<std::byte const> bytes() const { return const_cast<Buffer*>(this)->bytes(); }

 private:
  memory::Arena* arena_ = nullptr;
  std::span<std::byte> shared_;
  std::vector<std::byte> own_;
};

}  // namespace chorus::bench
