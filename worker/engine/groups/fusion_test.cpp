// Layout of many small tensors in few vectors.
#include "worker/engine/groups/fusion.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace chorus;
using namespace chorus::engine;

namespace {

constexpr FusionLimits small_limits{.bucket_bytes = 100, .alone_bytes = 60};

std::vector<FusionItem> bytes_of(std::vector<std::uint64_t> const& sizes) {
  std::vector<FusionItem> items;
  for (auto const bytes : sizes) items.push_back({bytes, Dtype::u8});
  return items;
}

// The items of each bucket.
std::vector<std::vector<std::size_t>> items_of(std::vector<FusionBucket> const& buckets) {
  std::vector<std::vector<std::size_t>> all;
  for (auto const& bucket : buckets) {
    all.emplace_back();
    for (auto const& piece : bucket.pieces) all.back().push_back(piece.item);
  }
  return all;
}

using Lists = std::vector<std::vector<std::size_t>>;

}  // namespace

TEST_CASE("small tensors share a bucket up to its limit, large ones go alone, empty ones not at all") {
  CHECK(items_of(fuse(bytes_of({10, 20, 30}), small_limits)) == Lists{{0, 1, 2}});
  CHECK(items_of(fuse(bytes_of({50, 50, 1}), small_limits)) == Lists{{0, 1}, {2}});
  CHECK(items_of(fuse(bytes_of({10, 60, 20}), small_limits)) == Lists{{0, 2}, {1}});
  CHECK(items_of(fuse(bytes_of({0, 10, 0, 5, 0}), small_limits)) == Lists{{1, 3}});
  CHECK(items_of(fuse(bytes_of({1000}), small_limits)) == Lists{{0}});
  CHECK(fuse(bytes_of({0, 0}), small_limits).empty());
  CHECK(fuse({}, small_limits).empty());
}

TEST_CASE("a tensor that is smaller than the limit for going alone, and larger than a bucket, goes alone") {
  FusionLimits const limits{.bucket_bytes = 10, .alone_bytes = 1000};
  CHECK(items_of(fuse(bytes_of({20, 5, 5, 20}), limits)) == Lists{{0}, {1, 2}, {3}});
}

TEST_CASE("tensors of several dtypes in turns fill a bucket each, and every piece is aligned to its elements") {
  std::vector<FusionItem> const items{
      {4, Dtype::f32}, {3, Dtype::u8}, {8, Dtype::f32}, {2, Dtype::u8}, {16, Dtype::f64}};
  auto const buckets = fuse(items, small_limits);
  CHECK(items_of(buckets) == Lists{{0, 2}, {1, 3}, {4}});
  CHECK(buckets[0].elements() == 3);
  CHECK(buckets[1].pieces[1] == FusionPiece{3, 3, 2});
  CHECK(buckets[2].dtype == Dtype::f64);
}

TEST_CASE("packed bytes come out where they were, whatever the sizes") {
  std::minstd_rand random(1);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::uint64_t> sizes(random() % 40);
    for (auto& size : sizes) size = random() % 3 == 0 ? 0 : random() % 120;
    std::vector<std::vector<std::byte>> tensors, results;
    for (auto const size : sizes) {
      tensors.emplace_back(size);
      for (auto& byte : tensors.back()) byte = static_cast<std::byte>(random());
      results.emplace_back(size);
    }
    std::vector<std::span<std::byte const>> from(tensors.begin(), tensors.end());
    std::vector<std::span<std::byte>> to(results.begin(), results.end());
    std::uint64_t packed_bytes = 0;
    for (auto const& bucket : fuse(bytes_of(sizes), small_limits)) {
      CHECK((bucket.is_alone() || bucket.bytes <= small_limits.bucket_bytes));
      std::vector<std::byte> packed(bucket.bytes);
      pack(bucket, from, packed);
      unpack(bucket, packed, to);
      packed_bytes += bucket.bytes;
    }
    std::uint64_t all_bytes = 0;
    for (auto const size : sizes) all_bytes += size;
    CHECK(packed_bytes == all_bytes);
    CHECK(results == tensors);
  }
}

TEST_CASE("tensors that lie one behind the other need no packing") {
  std::vector<std::byte> model(60);
  std::span const all(model);
  auto const buckets = fuse(bytes_of({10, 0, 20, 30}), small_limits);
  REQUIRE(buckets.size() == 1);
  std::vector<std::span<std::byte>> const in_order{all.subspan(0, 10), {}, all.subspan(10, 20), all.subspan(30, 30)};
  CHECK(in_one_piece(buckets[0], in_order).data() == model.data());
  CHECK(in_one_piece(buckets[0], in_order).size() == 60);
  std::vector<std::byte> elsewhere(20);
  std::vector<std::span<std::byte>> const apart{all.subspan(0, 10), {}, elsewhere, all.subspan(30, 30)};
  CHECK(in_one_piece(buckets[0], apart).empty());
}

TEST_CASE("buckets of the same total size from other tensors have different digests") {
  auto const digest = [](std::vector<std::uint64_t> const& sizes) {
    return fusion_digest(fuse(bytes_of(sizes)).at(0));
  };
  CHECK(digest({10, 20}) == digest({10, 20}));
  CHECK(digest({10, 0, 20}) == digest({10, 20}));
  CHECK(digest({10, 20}) != digest({20, 10}));
  CHECK(digest({10, 20}) != digest({10, 10, 10}));
  CHECK(digest({10, 20}) != 0);
  CHECK(digest({30}) == 0);
}
