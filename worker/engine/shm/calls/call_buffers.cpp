#include "worker/engine/shm/calls/call_buffers.hpp"

#include <algorithm>

#include "worker/engine/shm/lanes/peer_pieces.hpp"

namespace chorus::engine {
namespace {

using plan::Buffer;

// Several, because the buckets of one list may look alike.
constexpr std::size_t lists_max = 16;

bool keeps_wide(std::vector<Step> const& steps, Buffer buffer) {
  return std::ranges::any_of(steps, [&](Step const& step) {
    return std::ranges::any_of(step.destinations, [&](Range const& range) {
      return range.wide && !range.pieces.empty() && range.pieces[0].buffer == buffer;
    });
  });
}

}  // namespace

CallBuffers::CallBuffers(Dtype dtype, std::vector<Step> const& steps, memory::Arena& arena)
    : element_bytes_(element_bytes(dtype)), wide_bytes_(wide_bytes(dtype)), arena_(arena), cuts_(cuts_of(steps)) {}

CallBuffers::~CallBuffers() {
  if (!scratch_.empty()) arena_.free(scratch_.data());
}

Status CallBuffers::prepare(Addresses const& addresses, std::vector<Step> const& steps) {
  if (auto const bytes = addresses.scratch_bytes(); bytes != 0) {
    auto scratch = arena_.allocate(bytes);
    if (scratch.has_error()) return scratch.error();
    scratch_ = *scratch;
    shared_scratch_ = arena_.offset_of(scratch_);
  }
  auto const f32_for = [&](std::uint64_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes / element_bytes_ * wide_bytes_);
  };
  if (keeps_wide(steps, Buffer::output)) wide_output_ = f32_for(addresses.output_bytes());
  if (keeps_wide(steps, Buffer::scratch)) wide_scratch_ = f32_for(addresses.scratch_bytes());
  return ok();
}

void CallBuffers::use(std::span<std::byte const> input, std::span<std::byte> output, bool refers) {
  pieces_ = nullptr;
  input_ = input.data();
  output_ = output.data();
  shared_input_ = refers ? arena_.offset_of(input) : std::nullopt;
  shared_output_ = refers ? arena_.offset_of(output) : std::nullopt;
  may_be_written_ = shared_output_ && arena_.has_own_pages(output) && is_aligned(output.data(), element_bytes_);
}

void CallBuffers::use_pieces(std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces) {
  pieces_ = &list_of(pieces);
  input_ = input.data();
  output_ = nullptr;
  shared_input_ = arena_.offset_of(input);
  shared_output_ = std::nullopt;
  may_be_written_ = pieces_->may_be_written();
}

PieceList& CallBuffers::list_of(std::span<std::span<std::byte> const> pieces) {
  auto const found = std::ranges::find_if(lists_, [&](auto const& list) { return list->is_of(pieces); });
  if (found != lists_.end()) {
    std::rotate(lists_.begin(), found, found + 1);
  } else {
    // Destroying a list changes the arena, so stale lists are removed first, all at once.
    std::erase_if(lists_, [](auto const& list) { return !list->holds(); });
    if (lists_.size() == lists_max) lists_.pop_back();
    lists_.insert(lists_.begin(), std::make_unique<PieceList>(pieces, cuts_, element_bytes_, arena_));
  }
  return *lists_.front();
}

std::byte* CallBuffers::locate(Range const& range, Cursor const& cursor, std::uint64_t& bytes) const {
  auto const& piece = range.pieces[cursor.piece];
  bytes = std::min(bytes, piece.bytes - cursor.at);
  auto const offset = piece.at + cursor.at;
  if (range.wide) return base(piece.buffer, true) + offset / element_bytes_ * wide_bytes_;
  return locate(piece.buffer, offset, bytes);
}

std::optional<std::uint64_t> CallBuffers::shared(Buffer buffer, std::uint64_t offset) const {
  auto const& begin = buffer == Buffer::input    ? shared_input_
                      : buffer == Buffer::output ? shared_output_
                                                 : shared_scratch_;
  return begin ? std::optional(*begin + offset) : std::nullopt;
}

}  // namespace chorus::engine
