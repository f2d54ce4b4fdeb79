// Existing memory of a program that becomes part of an arena at its own address: other processes on the host can map
// it, and nothing is copied in a call.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "worker/memory/arena.hpp"
#include "worker/memory/pages/bus_guard.hpp"

namespace chorus::memory {

// make() replaces the pages by pages of the arena's file; addresses and contents stay. The destructor replaces them by
// private pages again. During both no thread may read or write the memory, and no call may use it. In between it is
// ordinary memory, with two differences: a child of fork() shares it, and the program must not unmap or discard its
// pages. Immovable.
class RegisteredMemory {
 public:
  // `bytes`: whole pages of private, writable memory, from malloc or an anonymous mapping. Errors:
  // MemoryErrc::out_of_range: they are not; unavailable: the arena is full, or the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<RegisteredMemory>> make(std::shared_ptr<Arena> arena,
                                                                      std::span<std::byte> bytes);
  ~RegisteredMemory();
  RegisteredMemory(RegisteredMemory const&) = delete;
  RegisteredMemory& operator=(RegisteredMemory const&) = delete;

 private:
  RegisteredMemory(std::shared_ptr<Arena> arena, std::span<std::byte> bytes, std::span<std::byte> block,
                   BusGuard guard);

  std::shared_ptr<Arena> const arena_;
  std::span<std::byte> const bytes_;
  std::span<std::byte> const block_;  // the same pages at the arena's addresses
  BusGuard const guard_;
};

}  // namespace chorus::memory
