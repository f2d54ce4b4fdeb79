// Arenas of GPUs that processes of one host read from each other where they lie: no copy through the host, one handle
// for all tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices {

class GpuUnit;

// How another process finds an arena, and that it is the one.
struct LentArena {
  IpcHandle handle{};
  std::string uuid;            // of the GPU
  std::uint64_t bytes = 0;     // of the arena
  std::uint64_t proof_at = 0;  // where in it 8 bytes hold the number that its owner was asked to prove
};

// Somebody else's arena as this process sees it. The GPU that reads it outlives it.
class BorrowedArena {
 public:
  BorrowedArena(Gpu& gpu, std::span<std::byte const> bytes) : gpu_(gpu), bytes_(bytes) {}
  ~BorrowedArena() { gpu_.close(const_cast<std::byte*>(bytes_.data())); }
  BorrowedArena(BorrowedArena const&) = delete;
  BorrowedArena& operator=(BorrowedArena const&) = delete;

  // Addresses for work of that GPU; only to be read.
  [[nodiscard]] std::span<std::byte const> bytes() const { return bytes_; }

 private:
  Gpu& gpu_;
  std::span<std::byte const> const bytes_;
};

// Maps the arena for work of this GPU, holds its size against what the driver says, and reads the proof: memory that
// was freed meanwhile, or a namesake of another container, is not taken for it. Waits for the device. Errors:
// GpuErrc::unavailable where the GPU does not reach the other one, bad_handle where it is not that memory; others where
// it could not be tried.
[[nodiscard]] Result<std::shared_ptr<BorrowedArena const>> borrow(GpuUnit& reader, LentArena const& lent,
                                                                  std::uint64_t proof);

}  // namespace chorus::devices
