// A queue of a GPU double, for doubles of libraries that queue work of their own.
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

  // Queues work: `act` is called once `ready` returns true, and later work waits for it.
  virtual void push(std::function<bool()> ready, std::function<void()> act) = 0;
  // Returns the accessible memory behind a device address, for `act`.
  virtual std::byte* behind(std::byte const* memory, std::uint64_t bytes) = 0;
  virtual std::uint32_t device() = 0;
};

}  // namespace chorus::devices::testing
