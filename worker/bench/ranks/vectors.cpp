#include "worker/bench/ranks/vectors.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "collectives/plan/holding.hpp"
#include "collectives/plan/sizes/layout.hpp"

namespace chorus::bench {
namespace {

constexpr std::uint32_t period = 7;

unsigned summand(unsigned turn, plan::Rank rank, std::uint64_t i) {
  return static_cast<unsigned>((i % period == rank % period) == (turn == 0));
}

// Mixes so that neighbouring elements, ranks and turns differ in all bytes.
std::uint64_t moved(unsigned turn, plan::Rank rank, std::uint64_t i) {
  auto x = (i + 1) * 0x9e3779b97f4a7c15u + (2 * std::uint64_t{rank} + turn) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
  return x ^ (x >> 29);
}

// Exact for the integers up to 2048.
std::uint16_t half(unsigned value) {
  if (value == 0) return 0;
  auto const exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
  return static_cast<std::uint16_t>((exponent + 15) << 10 | ((value << (10 - exponent)) & 1023));
}

// An integer as an element of the dtype, in the first bytes of the result.
std::uint64_t number(Dtype dtype, unsigned value) {
  switch (dtype) {
    case Dtype::f64:
      return std::bit_cast<std::uint64_t>(static_cast<double>(value));
    case Dtype::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Dtype::bf16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
    case Dtype::f16:
      return half(value);
    default:
      return value;
  }
}

// Elements [begin, end) of one rank's vector, or of the sum of all of them.
template <class Bits>
void append(std::vector<std::byte>& bytes, std::size_t width, plan::ElementRange range, Bits bits) {
  auto at = bytes.size();
  bytes.resize(at + range.size() * width);
  for (auto i = range.begin; i < range.end; ++i, at += width) {
    std::uint64_t const element = bits(i);
    std::memcpy(bytes.data() + at, &element, width);
  }
}

class Filler {
 public:
  Filler(Task const& task, plan::Rank rank, std::uint32_t ranks)
      : task_(task), rank_(rank), ranks_(ranks), layout_(task.elements, ranks), width_(element_bytes(task.dtype)) {
    plan::Spec spec{.op = task.op, .algorithm = {}, .ranks = ranks, .root = task.root};
    held_ = plan::holding(spec, rank, ranks);
  }

  void fill(unsigned turn, std::vector<std::byte>& input, std::vector<std::byte>& expected) const {
    append_blocks(input, held_.input, turn, [&](std::uint32_t) { return rank_; });
    if (reduces(task_.op)) return append_sum(expected, turn);
    if (task_.op == Op::all_to_all) return append_exchanged(expected, turn);
    bool const from_root = task_.op == Op::broadcast || task_.op == Op::scatter;
    append_blocks(expected, held_.output, turn, [&](std::uint32_t block) { return from_root ? task_.root : block; });
  }

 private:
  template <class Origin>
  void append_blocks(std::vector<std::byte>& bytes, plan::ChunkRange blocks, unsigned turn, Origin origin) const {
    for (auto block = blocks.first; block < blocks.first + blocks.count; ++block)
      append(bytes, width_, layout_.range(block), [&, from = origin(block)](std::uint64_t i) {
        return reduces(task_.op) ? number(task_.dtype, summand(turn, from, i)) : moved(turn, from, i);
      });
  }
  void append_exchanged(std::vector<std::byte>& bytes, unsigned turn) const {
    for (plan::Rank from = 0; from < ranks_; ++from)
      append(bytes, width_, layout_.range(rank_), [&](std::uint64_t i) { return moved(turn, from, i); });
  }
  void append_sum(std::vector<std::byte>& bytes, unsigned turn) const {
    std::array<std::uint64_t, period> sums{};
    for (std::uint64_t i = 0; i < period; ++i) {
      unsigned sum = 0;
      for (plan::Rank rank = 0; rank < ranks_; ++rank) sum += summand(turn, rank, i);
      sums[i] = number(task_.dtype, sum);
    }
    if (held_.output.empty()) return;
    append(bytes, width_, layout_.range(held_.output.first, held_.output.count),
           [&](std::uint64_t i) { return sums[i % period]; });
  }

  Task const& task_;
  plan::Rank const rank_;
  std::uint32_t const ranks_;
  plan::Layout const layout_;
  std::size_t const width_;
  plan::Holding held_;
};

}  // namespace

Vectors::Vectors(Task const& task, plan::Rank rank, std::uint32_t ranks, Place place) {
  Filler const filler(task, rank, ranks);
  for (unsigned turn = 0; turn < 2; ++turn) {
    std::vector<std::byte> input, expected;
    filler.fill(turn, input, expected);
    inputs_[turn] = Buffer(input, place);
    expected_[turn] = Buffer(expected, {place.arena, nullptr});
  }
  // The bound of the coarsest format (docs/reference/compressed_collectives.md), of numbers up to 1.
  if (task.compression) error_ = static_cast<float>(ranks) * (2.0F + 1.0F / 28) / 28;
  output_ = Buffer(std::vector<std::byte>(expected_[0].bytes().size(), std::byte{0xff}), place);
}

bool Vectors::is_right(std::uint64_t iteration) const {
  auto const expected = expected_[iteration % 2].bytes();
  if (expected.empty() || error_ == 0) return expected.empty() || output_.holds(expected);
  auto const result = output_.bytes();
  for (std::size_t at = 0; at < expected.size(); at += sizeof(float)) {
    float right = 0, got = 0;
    std::memcpy(&right, expected.data() + at, sizeof right);
    std::memcpy(&got, result.data() + at, sizeof got);
    if (!(std::abs(right - got) <= error_)) return false;
  }
  return true;
}

}  // namespace chorus::bench
