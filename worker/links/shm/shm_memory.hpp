// The memory of a link through shared memory, before the link exists: the dialer offers it, the acceptor maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "collectives/core/result.hpp"
#include "worker/links/handshake.hpp"
#include "worker/links/shm/shm_ring.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::links {

// A block of this process's arena that a peer reads and writes. Its range is never used again (Arena::allocate_once).
// The destructor returns its memory, unless it was leaked.
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
  // Keeps the memory until the region is destroyed, because the peer may still read it.
  void leak() { arena_ = nullptr; }

 private:
  memory::Arena* arena_ = nullptr;
  std::span<std::byte> bytes_;
};

// The dialer's offer.
struct ShmOffer {
  // Errors: MemoryErrc::unavailable.
  [[nodiscard]] static Result<ShmOffer> make(memory::Arena& arena);
  [[nodiscard]] SharedMemory described() const { return {control.arena()->ticket(), control.offset()}; }

  PeerBlock control;
};

// The dialer's memory as mapped at the acceptor.
struct ShmLoan {
  // Errors: LinkErrc::bad_handshake: the region has no rings at this offset. MemoryErrc::damaged.
  [[nodiscard]] static Result<ShmLoan> take(std::shared_ptr<memory::PeerRegion const> region, std::uint64_t offset);

  std::shared_ptr<memory::PeerRegion const> region;
  std::span<std::byte> control;
};

}  // namespace chorus::links
