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

// Kept from call to call, since programs call with the same tensors again and again. One thread at a time.
class PieceList {
 public:
  // The arena outlives it. Ranges of the steps begin where an entry of the list begins: pieces are cut there.
  PieceList(std::vector<Step> const& steps, memory::Arena& arena);
  ~PieceList();
  PieceList(PieceList const&) = delete;
  PieceList& operator=(PieceList const&) = delete;

  // The pieces of the next call, none empty; nothing of what was listed is read or written by others any more.
  void list(std::span<std::span<std::byte> const> pieces);

  // What lies at an offset of the whole; `bytes` becomes what is in one piece from there, if that is less.
  [[nodiscard]] std::byte* locate(std::uint64_t offset, std::uint64_t& bytes) const;

  // Where in the arena the entries from that offset on are listed: nothing unless all pieces lie in the arena, and an
  // entry begins there.
  [[nodiscard]] std::optional<std::uint64_t> listed(std::uint64_t offset) const;
  // Whether others may write there: what is withdrawn afterwards takes nobody else's memory with it.
  [[nodiscard]] bool may_be_written() const { return may_be_written_; }

 private:
  void cut();
  void publish();
  [[nodiscard]] std::size_t entry_at(std::uint64_t offset) const;

  std::vector<std::uint64_t> cuts_;  // in order
  memory::Arena& arena_;
  std::vector<std::span<std::byte>> pieces_;
  std::uint64_t withdrawals_ = 0;  // of the arena, when they were listed

  std::vector<std::span<std::byte>> entries_;
  std::vector<std::uint64_t> starts_;  // of the entries, in the whole
  std::span<std::byte> published_;     // in the arena; empty: not all pieces are
  std::uint64_t published_at_ = 0;     // its place there
  bool may_be_written_ = false;
};

}  // namespace chorus::engine
