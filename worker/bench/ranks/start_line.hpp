// A barrier in shared memory at which rank processes wait before each iteration, so that all begin it together. They
// spin, because the last one to be woken would begin long after the first.
#pragma once

#include <cstdint>

#include "collectives/core/result.hpp"

namespace chorus::bench {

class StartLine {
 public:
  // The descriptor is closed on exec; pass a duplicate to the ranks. Errors: the system's.
  [[nodiscard]] static Result<StartLine> make(std::uint32_t ranks);
  // In a rank process: takes over the descriptor.
  [[nodiscard]] static Result<StartLine> open(int descriptor);
  ~StartLine();
  StartLine(StartLine&& other) noexcept;
  StartLine& operator=(StartLine&&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::uint32_t ranks() const;

  // Returns when every rank has called it. Blocks for ever if one has died.
  void wait();

 private:
  struct Shared;
  StartLine(int descriptor, Shared* shared) : descriptor_(descriptor), shared_(shared) {}
  [[nodiscard]] static Result<StartLine> map(int descriptor);

  int descriptor_;
  Shared* shared_;
};

}  // namespace chorus::bench
