// Arenas of GPUs that processes of one host read from each other where they lie: no copy through the host, one handle
// for all tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/word_copy.hpp"

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
  BorrowedArena(Gpu& gpu, std::span<std::byte> bytes) : gpu_(gpu), bytes_(bytes) {}
  ~BorrowedArena() { gpu_.close(bytes_.data()); }
  BorrowedArena(BorrowedArena const&) = delete;
  BorrowedArena& operator=(BorrowedArena const&) = delete;

  // Addresses for work of that GPU; written only where the owner says so.
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  Gpu& gpu_;
  std::span<std::byte> const bytes_;
};

// An arena that is mapped here, and whose proof is being read: a device that has other work does that when it comes to
// it, and nobody waits. The unit outlives it. One thread at a time.
class Borrowing {
 public:
  // Maps the arena for work of this GPU, and holds its size against what the driver says. Errors: GpuErrc::unavailable
  // where the GPU does not reach the other one, bad_handle where it is not that memory; others where it could not be
  // tried.
  [[nodiscard]] static Result<std::unique_ptr<Borrowing>> begin(GpuUnit& reader, LentArena const& lent,
                                                                std::uint64_t proof);

  // Once the proof is read: memory that was freed meanwhile, or a namesake of another container, is not taken for the
  // arena. Null: not yet; waits for it as WordCopy does. Errors: as above.
  [[nodiscard]] Result<std::shared_ptr<BorrowedArena const>> arena();
  // Its end would not wait for the device. Never, once that is lost.
  [[nodiscard]] bool rests();

 private:
  Borrowing(GpuUnit& reader, std::shared_ptr<BorrowedArena const> arena, std::uint64_t proof,
            std::unique_ptr<WordCopy> reading);

  GpuUnit& reader_;
  std::shared_ptr<BorrowedArena const> const arena_;
  std::uint64_t const proof_;
  std::unique_ptr<WordCopy> const reading_;
};

}  // namespace chorus::devices
