// Memory that a program has already, made a part of an arena where it lies: others on the host see it, and nobody
// copies.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "worker/memory/arena.hpp"
#include "worker/memory/bus_guard.hpp"

namespace chorus::memory {

// Its pages are exchanged for pages of the arena's file, its addresses and contents stay; and again when this object
// dies. Nobody looks there or writes meanwhile, and no call that uses it is under way. In between it is ordinary
// memory, but that a child of fork() shares it, and that who unmaps it or gives its pages back loses them. Immovable.
class RegisteredMemory {
 public:
  // Whole pages of private memory that can be read and written, of malloc or an anonymous mapping. Errors:
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
  std::span<std::byte> const block_;  // the same pages, where the arena has them
  BusGuard const guard_;
};

}  // namespace chorus::memory
