// Working memory that is kept between calls. It lies in the arena, where members that share memory can read it; in
// ordinary memory if there is no arena, or no room in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/memory/arena.hpp"

namespace chorus::engine {

class SpareMemory {
 public:
  // The arena may be null; it outlives the object.
  explicit SpareMemory(memory::Arena* arena) : arena_(arena) {}
  ~SpareMemory() { give_back(); }
  SpareMemory(SpareMemory const&) = delete;
  SpareMemory& operator=(SpareMemory const&) = delete;

  // Returns memory with unspecified contents, valid until the next take().
  [[nodiscard]] std::span<std::byte> take(std::uint64_t bytes);

 private:
  void give_back();

  memory::Arena* const arena_;
  std::span<std::byte> shared_;
  std::vector<std::byte> own_;
};

}  // namespace chorus::engine
