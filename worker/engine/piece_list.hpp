// Memory of this member that lies in several pieces, and the list by which peers find them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "worker/engine/shared_steps.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine {

// Where the ranges of steps begin, but for those in scratch memory: there pieces are cut. In order.
[[nodiscard]] std::vector<std::uint64_t> cuts_of(std::vector<Step> const& steps);

// One thread at a time.
class PieceList {
 public:
  // The arena outlives it. No piece is empty.
  PieceList(std::span<std::span<std::byte> const> pieces, std::span<std::uint64_t const> cuts,
            std::size_t element_bytes, memory::Arena& arena);
  // Nothing of what is listed is read or written by others any more, unless it stays().
  ~PieceList();
  PieceList(PieceList const&) = delete;
  PieceList& operator=(PieceList const&) = delete;

  // Whether what it says of its pieces still does.
  [[nodiscard]] bool holds() const { return changes_ == arena_.changes(); }
  // Whether it is the list of these pieces, and holds.
  [[nodiscard]] bool is_of(std::span<std::span<std::byte> const> pieces) const;
  // A call has failed: peers may look at the list as long as the arena lives, so its place is not used again.
  void stays() { published_ = {}; }

  // What lies at an offset of the whole; `bytes` becomes what is in one piece from there, if that is less.
  [[nodiscard]] std::byte* locate(std::uint64_t offset, std::uint64_t& bytes) const;

  // Where in the arena the entries from that offset on are listed: nothing unless all pieces lie in the arena, and an
  // entry begins there.
  [[nodiscard]] std::optional<std::uint64_t> listed(std::uint64_t offset) const;
  // Whether others may write there: what is withdrawn afterwards takes nobody else's memory with it.
  [[nodiscard]] bool may_be_written() const { return may_be_written_; }

 private:
  void cut(std::span<std::uint64_t const> cuts);
  void publish(std::size_t element_bytes);
  [[nodiscard]] std::size_t entry_at(std::uint64_t offset) const;

  memory::Arena& arena_;
  std::vector<std::span<std::byte>> const pieces_;
  std::uint64_t const changes_;  // of the arena, when they were listed
  std::vector<std::span<std::byte>> entries_;
  std::vector<std::uint64_t> starts_;  // of the entries, in the whole
  std::span<std::byte> published_;     // in the arena; empty: not all pieces are
  std::uint64_t published_at_ = 0;     // its place there
  bool may_be_written_ = false;
};

}  // namespace chorus::engine
