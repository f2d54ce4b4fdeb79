// The buffers of a call: where input, output and scratch lie in this member's memory, and where peers find them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/engine/program/addresses.hpp"
#include "worker/engine/shm/calls/piece_list.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine {

// A place in a Range.
struct Cursor {
  std::uint32_t piece = 0;
  std::uint64_t at = 0;  // bytes from the begin of the piece

  // `bytes`: no more than the piece has from here on.
  void advance(Range const& range, std::uint64_t bytes) {
    at += bytes;
    if (at == range.pieces[piece].bytes) *this = {piece + 1, 0};
  }
};

// Of one kind of call, used for one call after another. One thread at a time.
class CallBuffers {
 public:
  // The arena outlives the buffers.
  CallBuffers(Dtype dtype, std::vector<Step> const& steps, memory::Arena& arena);
  ~CallBuffers();
  CallBuffers(CallBuffers const&) = delete;
  CallBuffers& operator=(CallBuffers const&) = delete;

  // Once, before anything else. Error: MemoryErrc::unavailable if there is no room for the scratch memory.
  [[nodiscard]] Status prepare(Addresses const& addresses, std::vector<Step> const& steps);

  // The memory of the next call, valid until it is done. `refers`: messages may refer to memory in the arena.
  void use(std::span<std::byte const> input, std::span<std::byte> output, bool refers);
  // `pieces`: see SharedCall::begin_in_pieces.
  void use_pieces(std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces);
  // The call has failed: memory that peers may still read is not reused.
  void leave_to_peers() {
    if (pieces_ != nullptr) pieces_->stays();
  }

  // True if peers may write to the output.
  [[nodiscard]] bool may_be_written() const { return may_be_written_; }
  // The list of the pieces; null if no buffer is in pieces.
  [[nodiscard]] PieceList const* pieces() const { return pieces_; }
  [[nodiscard]] bool is_in_pieces(plan::Buffer buffer) const {
    return pieces_ != nullptr &&
           (buffer == plan::Buffer::output || (input_ == nullptr && buffer == plan::Buffer::input));
  }

  // Begin of a buffer in one piece. `wide`: of its partial sums in f32. The input is never written.
  [[nodiscard]] std::byte* base(plan::Buffer buffer, bool wide = false) const {
    switch (buffer) {
      case plan::Buffer::output:
        return wide ? wide_output_.get() : output_;
      case plan::Buffer::scratch:
        return wide ? wide_scratch_.get() : scratch_.data();
      case plan::Buffer::input:
        break;
    }
    return const_cast<std::byte*>(input_);
  }
  // The memory at an offset of a buffer, not wide; reduces `bytes` to what is contiguous there.
  [[nodiscard]] std::byte* locate(plan::Buffer buffer, std::uint64_t offset, std::uint64_t& bytes) const {
    return is_in_pieces(buffer) ? pieces_->locate(offset, bytes) : base(buffer) + offset;
  }
  // The same for a place in a range, which may be wide.
  [[nodiscard]] std::byte* locate(Range const& range, Cursor const& cursor, std::uint64_t& bytes) const;

  // Arena offset at which peers find an offset of a buffer in one piece; empty if it is not in the arena.
  [[nodiscard]] std::optional<std::uint64_t> shared(plan::Buffer buffer, std::uint64_t offset) const;
  [[nodiscard]] std::optional<std::uint64_t> shared(std::span<std::byte const> bytes) const {
    return arena_.offset_of(bytes);
  }

 private:
  [[nodiscard]] PieceList& list_of(std::span<std::span<std::byte> const> pieces);

  std::size_t const element_bytes_;
  std::size_t const wide_bytes_;  // of an element in f32
  memory::Arena& arena_;
  std::span<std::byte> scratch_;  // in the arena
  std::unique_ptr<std::byte[]> wide_output_, wide_scratch_;
  std::vector<std::uint64_t> const cuts_;
  // Programs repeat calls with the same tensors: the lists of the last calls in pieces, the last one first.
  std::vector<std::unique_ptr<PieceList>> lists_;

  // Of the current call.
  std::byte const* input_ = nullptr;
  std::byte* output_ = nullptr;
  PieceList* pieces_ = nullptr;
  std::optional<std::uint64_t> shared_input_, shared_output_, shared_scratch_;  // arena offsets
  bool may_be_written_ = false;
};

}  // namespace chorus::engine
