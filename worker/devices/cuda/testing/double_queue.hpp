// A queue of a double, as libraries see it that queue work of their own there. For doubles of these libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace chorus::devices::testing {

class DoubleQueue {
 public:
  DoubleQueue() = default;
  virtual ~DoubleQueue() = default;
  DoubleQueue(DoubleQueue const&) = delete;
  DoubleQueue& operator=(DoubleQueue const&) = delete;

  // Behind what is queued: acts as soon as it is ready, and nothing behind it does before.
  virtual void push(std::function<bool()> ready, std::function<void()> act) = 0;
  // What the device has there, for what acts.
  virtual std::byte* behind(std::byte const* memory, std::uint64_t bytes) = 0;
  virtual std::uint32_t device() = 0;
};

}  // namespace chorus::devices::testing
