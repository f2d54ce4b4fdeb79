// Layout of many small tensors in few vectors. Pure functions of sizes and memory.
//
// A call costs about the same for 4 KiB as for 4 bytes, so a hundred small tensors are packed one behind the other,
// sent in one call, and unpacked. Ranks that fuse the same list get the same layout, because it follows from sizes,
// dtypes and limits.
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
  friend bool operator==(FusionItem const&, FusionItem const&) = default;
};

// The same on all ranks.
struct FusionLimits {
  std::uint64_t bucket_bytes = 4u << 20;  // limit for buckets of several tensors
  std::uint64_t alone_bytes =
      256u << 10;  // tensors from this size on are not packed: copying would cost more than a call
};

struct FusionPiece {
  std::size_t item = 0;  // index into the list
  std::uint64_t at = 0;  // offset in the bucket
  std::uint64_t bytes = 0;
  friend bool operator==(FusionPiece const&, FusionPiece const&) = default;
};

// The content of one call. Pieces have no gaps, so that nothing else is moved or reduced; and one dtype, so that each
// piece is aligned to its elements.
struct FusionBucket {
  Dtype dtype = Dtype::f32;
  std::uint64_t bytes = 0;
  std::vector<FusionPiece> pieces;  // in the order of the list; not empty
  [[nodiscard]] std::uint64_t elements() const { return bytes / element_bytes(dtype); }
  [[nodiscard]] bool is_alone() const { return pieces.size() == 1; }
};

// Puts every item that is not empty into one bucket; buckets are ordered by their first items. Items of different
// dtypes may alternate: each dtype fills buckets of its own.
[[nodiscard]] std::vector<FusionBucket> fuse(std::span<FusionItem const> items, FusionLimits const& limits = {});

// Hash of the layout, on which the ranks must agree: a bucket of the same size made of other tensors would give a wrong
// sum. 0 exactly if the bucket has a single piece.
[[nodiscard]] std::uint64_t fusion_digest(FusionBucket const& bucket);

// Copy between the tensors, by index in the list, and `packed`, which has bucket.bytes bytes. No overlap.
void pack(FusionBucket const& bucket, std::span<std::span<std::byte const> const> tensors, std::span<std::byte> packed);
void unpack(FusionBucket const& bucket, std::span<std::byte const> packed,
            std::span<std::span<std::byte> const> tensors);

// The bucket's bytes in place if its tensors lie one behind the other in this order, as those of a model that was
// allocated at once; empty otherwise. Local to a rank: other ranks may have to pack.
[[nodiscard]] std::span<std::byte> in_one_piece(FusionBucket const& bucket,
                                                std::span<std::span<std::byte> const> tensors);

}  // namespace chorus::engine
