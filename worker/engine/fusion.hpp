// Many small tensors as few vectors: which piece goes where. Pure: knows sizes and memory, calls nothing.
//
// A call costs about the same for 4 KiB as for 4 bytes, so a hundred small tensors are packed one behind the other,
// called for once, and unpacked. Ranks that fuse the same list agree on everything here: it follows from sizes, dtypes
// and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/dtype.hpp"

namespace chorus::engine {

struct FusionItem {
  std::uint64_t bytes = 0;  // a multiple of the dtype's
  Dtype dtype = Dtype::f32;
};

// The same on all ranks.
struct FusionLimits {
  std::uint64_t bucket_bytes = 4u << 20;  // no bucket of several tensors is larger
  std::uint64_t alone_bytes =
      256u << 10;  // a tensor from here on goes by itself: copying it would cost more than a call
};

struct FusionPiece {
  std::size_t item = 0;  // index into the list
  std::uint64_t at = 0;  // of its first byte in the bucket
  std::uint64_t bytes = 0;
  friend bool operator==(FusionPiece const&, FusionPiece const&) = default;
};

// What is one call. Pieces lie without gaps, so that nothing is moved or reduced that belongs to nobody; of one dtype,
// so that each is aligned to its elements.
struct FusionBucket {
  Dtype dtype = Dtype::f32;
  std::uint64_t bytes = 0;
  std::vector<FusionPiece> pieces;  // in the order of the list; not empty
  [[nodiscard]] std::uint64_t elements() const { return bytes / element_bytes(dtype); }
  [[nodiscard]] bool is_alone() const { return pieces.size() == 1; }
};

// Every item that is not empty is in one bucket; buckets in the order of their first items. Tensors of several dtypes
// may come in turns: each dtype fills buckets of its own.
[[nodiscard]] std::vector<FusionBucket> fuse(std::span<FusionItem const> items, FusionLimits const& limits = {});

// What the ranks must agree on beside the bytes of a bucket: the same total from other tensors would be a wrong sum.
// Never 0 of several pieces, 0 of one that is alone.
[[nodiscard]] std::uint64_t fusion_digest(FusionBucket const& bucket);

// From and to where the tensors lie; `tensors` by index in the list, `packed` of bucket.bytes. No overlap.
void pack(FusionBucket const& bucket, std::span<std::span<std::byte const> const> tensors, std::span<std::byte> packed);
void unpack(FusionBucket const& bucket, std::span<std::byte const> packed,
            std::span<std::span<std::byte> const> tensors);

// The bucket's bytes where they lie, if its tensors happen to lie one behind the other in this order, as those of a
// model that was allocated at once do; empty otherwise. Local to a rank: others may have to pack.
[[nodiscard]] std::span<std::byte> in_one_piece(FusionBucket const& bucket,
                                                std::span<std::span<std::byte> const> tensors);

}  // namespace chorus::engine
