#include "worker/engine/groups/fusion.hpp"

#include <array>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "collectives/plan/digest.hpp"

namespace chorus::engine {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

}  // namespace

std::vector<FusionBucket> fuse(std::span<FusionItem const> items, FusionLimits const& limits) {
  std::vector<FusionBucket> buckets;
  std::array<std::size_t, all_dtypes.size()> open;  // by dtype: the bucket that is being filled
  open.fill(none);
  for (std::size_t item = 0; item < items.size(); ++item) {
    auto const [bytes, dtype] = items[item];
    CHORUS_ASSERT(bytes % element_bytes(dtype) == 0, "whole elements");
    if (bytes == 0) continue;
    if (bytes >= limits.alone_bytes || bytes > limits.bucket_bytes) {
      buckets.push_back({dtype, bytes, {{item, 0, bytes}}});
      continue;
    }
    auto& current = open[static_cast<std::size_t>(dtype)];
    if (current == none || bytes > limits.bucket_bytes - buckets[current].bytes) {
      current = buckets.size();
      buckets.push_back({dtype, 0, {}});
    }
    auto& bucket = buckets[current];
    bucket.pieces.push_back({item, bucket.bytes, bytes});
    bucket.bytes += bytes;
  }
  return buckets;
}

std::uint64_t fusion_digest(FusionBucket const& bucket) {
  if (bucket.is_alone()) return 0;
  std::vector<std::uint64_t> sizes;
  for (auto const& piece : bucket.pieces) sizes.push_back(piece.bytes);
  return plan::digest(sizes.data(), sizes.size() * sizeof sizes.front(), bucket.pieces.size()) | 1;
}

void pack(FusionBucket const& bucket, std::span<std::span<std::byte const> const> tensors,
          std::span<std::byte> packed) {
  CHORUS_ASSERT(packed.size() == bucket.bytes, "room for all pieces");
  for (auto const& piece : bucket.pieces) {
    auto const tensor = tensors[piece.item];
    CHORUS_ASSERT(tensor.size() == piece.bytes, "the tensors that were fused");
    std::memcpy(packed.data() + piece.at, tensor.data(), piece.bytes);
  }
}

void unpack(FusionBucket const& bucket, std::span<std::byte const> packed,
            std::span<std::span<std::byte> const> tensors) {
  CHORUS_ASSERT(packed.size() == bucket.bytes, "all pieces");
  for (auto const& piece : bucket.pieces) {
    auto const tensor = tensors[piece.item];
    CHORUS_ASSERT(tensor.size() == piece.bytes, "the tensors that were fused");
    std::memcpy(tensor.data(), packed.data() + piece.at, piece.bytes);
  }
}

std::span<std::byte> in_one_piece(FusionBucket const& bucket, std::span<std::span<std::byte> const> tensors) {
  auto* const first = tensors[bucket.pieces.front().item].data();
  for (auto const& piece : bucket.pieces)
    if (tensors[piece.item].data() != first + piece.at) return {};
  return {first, bucket.bytes};
}

}  // namespace chorus::engine
