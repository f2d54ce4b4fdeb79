// The memory of a link through shared memory, before the link exists: the dialer offers it, the acceptor takes it up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "collectives/core/result.hpp"
#include "worker/links/handshake.hpp"
#include "worker/links/shm_ring.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::links {

// A block of one's own arena that a peer reads and writes, so that its place is never used again. Given back at the
// end, unless it was let lie.
class PeerBlock {
 public:
  PeerBlock() = default;
  // Errors: MemoryErrc::unavailable. The arena outlives the block.
  [[nodiscard]] static Result<PeerBlock> allocate(memory::Arena& arena, std::size_t size_bytes);
  PeerBlock(PeerBlock&& other) noexcept;
  PeerBlock& operator=(PeerBlock&& other) noexcept;
  ~PeerBlock();

  [[nodiscard]] memory::Arena* arena() const { return arena_; }  // null: no block
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t offset() const;
  // The peer may still read it: it stays until the region goes.
  void let_lie() { arena_ = nullptr; }

 private:
  memory::Arena* arena_ = nullptr;
  std::span<std::byte> bytes_;
};

// The dialer's.
struct ShmOffer {
  // Errors: MemoryErrc::unavailable.
  [[nodiscard]] static Result<ShmOffer> make(memory::Arena& arena);
  [[nodiscard]] SharedMemory described() const { return {control.arena()->ticket(), control.offset()}; }

  PeerBlock control;
};

// The acceptor's: the dialer's memory as it is mapped here.
struct ShmLoan {
  // Errors: LinkErrc::bad_handshake: the region is the dialer's, but what it says is there is not. MemoryErrc::damaged.
  [[nodiscard]] static Result<ShmLoan> take(std::shared_ptr<memory::PeerRegion const> region, std::uint64_t offset);

  std::shared_ptr<memory::PeerRegion const> region;
  std::span<std::byte> control;
};

}  // namespace chorus::links
