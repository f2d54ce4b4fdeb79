#include "worker/links/shm/shm_memory.hpp"

#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/links/frames/errc.hpp"
#include "worker/memory/pages/errc.hpp"

namespace chorus::links {

Result<PeerBlock> PeerBlock::allocate(memory::Arena& arena, std::size_t size_bytes) {
  auto bytes = arena.allocate_once(size_bytes);
  if (bytes.has_error()) return bytes.error();
  PeerBlock block;
  block.arena_ = &arena;
  block.bytes_ = *bytes;
  return block;
}

PeerBlock::PeerBlock(PeerBlock&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}

PeerBlock& PeerBlock::operator=(PeerBlock&& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PeerBlock::~PeerBlock() {
  if (arena_ != nullptr) arena_->retire(bytes_);
}

std::uint64_t PeerBlock::offset() const {
  auto const offset = arena_->offset_of(bytes_);
  CHORUS_ASSERT(offset.has_value(), "a block for peers lies in the region");
  return *offset;
}

Result<ShmOffer> ShmOffer::make(memory::Arena& arena) {
  auto block = PeerBlock::allocate(arena, sizeof(ShmControl));
  if (block.has_error()) return block.error();
  auto& control = *reinterpret_cast<ShmControl*>(block->bytes().data());
  control.layout = shm_control_layout;
  control.magic = shm_control_magic;
  return ShmOffer{std::move(*block)};
}

Result<ShmLoan> ShmLoan::take(std::shared_ptr<memory::PeerRegion const> region, std::uint64_t offset) {
  auto const bad = [&](std::string const& why) {
    return Error(LinkErrc::bad_handshake, "Chorus-Shared-Memory: " + why + " at byte " + std::to_string(offset));
  };
  if (offset % alignof(ShmControl) != 0) return bad("no rings can be");
  auto const bytes = region->mapping().at(offset, sizeof(ShmControl));
  if (bytes.empty()) return bad("the region ends before the rings");
  auto const& control = *reinterpret_cast<ShmControl const*>(bytes.data());
  bool const is_right = control.magic == shm_control_magic && control.layout == shm_control_layout;
  if (region->mapping().is_broken())
    return Error(memory::MemoryErrc::damaged, "the peer's shared memory was truncated");
  if (!is_right) return bad("no rings of this kind");
  return ShmLoan{std::move(region), bytes};
}

}  // namespace chorus::links
