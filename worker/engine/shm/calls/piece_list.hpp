// A member's memory in several pieces, and the list by which peers find them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine {

// Offsets at which ranges of the steps begin, except in scratch memory; pieces are cut there. Sorted.
[[nodiscard]] std::vector<std::uint64_t> cuts_of(std::vector<Step> const& steps);

// Owns the list in the arena. One thread at a time.
class PieceList {
 public:
  // The arena outlives the list. No piece is empty.
  PieceList(std::span<std::span<std::byte> const> pieces, std::span<std::uint64_t const> cuts,
            std::size_t element_bytes, memory::Arena& arena);
  // Peers must no longer read or write the listed memory, unless stays() was called.
  ~PieceList();
  PieceList(PieceList const&) = delete;
  PieceList& operator=(PieceList const&) = delete;

  // True while the arena is unchanged, so that the list's addresses are valid.
  [[nodiscard]] bool holds() const { return changes_ == arena_.changes(); }
  // True if the list is of these pieces and holds().
  [[nodiscard]] bool is_of(std::span<std::span<std::byte> const> pieces) const;
  // A call has failed: peers may read the list as long as the arena lives, so its place is never reused.
  void stays() { published_ = {}; }

  // The memory at an offset of the whole; reduces `bytes` to what is contiguous there.
  [[nodiscard]] std::byte* locate(std::uint64_t offset, std::uint64_t& bytes) const;

  // Arena offset of the entries that begin at an offset of the whole. Empty unless all pieces are in the arena and an
  // entry begins there.
  [[nodiscard]] std::optional<std::uint64_t> listed(std::uint64_t offset) const;
  // True if peers may write there: withdrawing the memory later affects no other memory.
  [[nodiscard]] bool may_be_written() const { return may_be_written_; }

 private:
  void cut(std::span<std::uint64_t const> cuts);
  void publish(std::size_t element_bytes);
  [[nodiscard]] std::size_t entry_at(std::uint64_t offset) const;

  memory::Arena& arena_;
  std::vector<std::span<std::byte>> const pieces_;
  std::uint64_t const changes_;  // arena_.changes() when the pieces were listed
  std::vector<std::span<std::byte>> entries_;
  std::vector<std::uint64_t> starts_;  // offset of each entry in the whole
  std::span<std::byte> published_;     // in the arena; empty if not all pieces are there
  std::uint64_t published_at_ = 0;     // its arena offset
  bool may_be_written_ = false;
};

}  // namespace chorus::engine
