// Memory of a peer from which a message is read, or to which it is written: one piece, or several that the peer lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "worker/engine/shm/lanes/shared_board.hpp"
#include "worker/memory/regions/shared_region.hpp"

namespace chorus::engine {

[[nodiscard]] inline bool is_aligned(std::byte const* at, std::size_t element_bytes) {
  return reinterpret_cast<std::uintptr_t>(at) % element_bytes == 0;
}

// A cursor that walks the memory once from beginning to end; everything that the peer wrote is checked before use. A
// value; the mapping outlives it.
class PeerPieces {
 public:
  PeerPieces() = default;  // no memory at all

  [[nodiscard]] static PeerPieces one(memory::Mapping const& memory, std::uint64_t offset, std::uint64_t bytes) {
    PeerPieces pieces;
    pieces.left_ = pieces.here_ = bytes;
    pieces.data_ = memory.at(offset, bytes).data();
    return pieces;
  }
  // `list`: offset of the first PieceEntry.
  [[nodiscard]] static PeerPieces listed(memory::Mapping const& memory, std::uint64_t list, std::uint64_t bytes) {
    PeerPieces pieces;
    pieces.memory_ = &memory;
    pieces.list_ = list;
    pieces.left_ = bytes;
    pieces.find_next();
    return pieces;
  }

  // False if there is no memory, or all of it was walked through.
  [[nodiscard]] bool is_there() const { return left_ != 0; }
  // True if the memory at the cursor is not within the peer's region.
  [[nodiscard]] bool is_wrong() const { return left_ != 0 && data_ == nullptr; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t here() const { return here_; }  // contiguous bytes from data() on

  // At most here(); not if is_wrong().
  void advance(std::uint64_t bytes) {
    data_ += bytes;
    here_ -= bytes;
    left_ -= bytes;
    if (here_ == 0 && left_ != 0) find_next();
  }

 private:
  // The peer may change the list at any time, so an entry is read once, then checked, then used.
  void find_next() {
    data_ = nullptr;
    here_ = 0;
    auto const at = memory_->at(list_, sizeof(PieceEntry));
    if (at.empty()) return;
    PieceEntry entry;
    std::memcpy(&entry, at.data(), sizeof entry);
    list_ += sizeof entry;
    if (entry.bytes == 0) return;
    data_ = memory_->at(entry.offset, entry.bytes).data();
    here_ = std::min(entry.bytes, left_);
  }

  memory::Mapping const* memory_ = nullptr;
  std::uint64_t list_ = 0;  // offset of the next entry
  std::uint64_t left_ = 0;
  std::byte* data_ = nullptr;
  std::uint64_t here_ = 0;
};

}  // namespace chorus::engine
