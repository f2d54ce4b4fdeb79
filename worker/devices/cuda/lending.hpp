// Sharing of GPU arenas between processes of one host: no copy through host memory, and one handle for all tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/word_copy.hpp"

namespace chorus::devices {

class GpuUnit;

// Describes an arena to another process, which maps it and checks that it is the right one.
struct LentArena {
  IpcHandle handle{};
  std::string uuid;            // of the GPU
  std::uint64_t bytes = 0;     // size of the arena
  std::uint64_t proof_at = 0;  // offset in the arena of the 8 bytes of the proof
};

// Another process's arena, mapped in this process. The GPU that reads it outlives it.
class BorrowedArena {
 public:
  BorrowedArena(Gpu& gpu, std::span<std::byte> bytes) : gpu_(gpu), bytes_(bytes) {}
  ~BorrowedArena() { gpu_.close(bytes_.data()); }
  BorrowedArena(BorrowedArena const&) = delete;
  BorrowedArena& operator=(BorrowedArena const&) = delete;

  // Addresses for work of that GPU, which writes only to places that the owner has named.
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  Gpu& gpu_;
  std::span<std::byte> const bytes_;
};

// A mapped arena whose proof is being read. A busy device reads the proof after its other work; no thread waits for it.
// The unit outlives it. One thread at a time.
class Borrowing {
 public:
  // Maps the arena for work of this GPU, and checks its size with the driver. Errors: GpuErrc::unavailable if the GPU
  // cannot reach the other one, bad_handle if it is not that memory; other errors may be temporary.
  [[nodiscard]] static Result<std::unique_ptr<Borrowing>> begin(GpuUnit& reader, LentArena const& lent,
                                                                std::uint64_t proof);

  // Returns the arena when its proof has been read, which excludes memory that was freed meanwhile and GPUs of other
  // containers. Null: not yet; waits for the proof as WordCopy does. Errors: as above.
  [[nodiscard]] Result<std::shared_ptr<BorrowedArena const>> arena();
  // Returns true if the destructor would not wait for the device; false for ever once the device is lost.
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
