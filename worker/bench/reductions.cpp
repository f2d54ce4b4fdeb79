#include "worker/bench/reductions.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "worker/bench/duel.hpp"
#include "worker/bench/hand_written.hpp"
#include "worker/devices/fold.hpp"

namespace chorus::bench {
namespace {

// Small whole numbers, so that no sum of two is rounded or too large in any dtype.
template <typename Element>
void fill(std::span<std::byte> bytes, Element (*convert)(unsigned)) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(Element); ++i) {
    auto const element = convert(static_cast<unsigned>(i % 61 + 1));
    std::memcpy(bytes.data() + i * sizeof element, &element, sizeof element);
  }
}

void fill(Dtype dtype, std::span<std::byte> bytes) {
  // Of a float's bits, those that bf16 keeps; and an f16 of a whole number up to 64.
  auto const bf16 = [](unsigned n) { return std::uint16_t(std::bit_cast<std::uint32_t>(static_cast<float>(n)) >> 16); };
  auto const f16 = [](unsigned n) {
    auto const exponent = static_cast<unsigned>(std::bit_width(n)) - 1;
    return std::uint16_t((exponent + 15) << 10 | ((n << (10 - exponent)) & 0x3ff));
  };
  switch (dtype) {
    case Dtype::f64:
      return fill<double>(bytes, [](unsigned n) { return static_cast<double>(n); });
    case Dtype::f32:
      return fill<float>(bytes, [](unsigned n) { return static_cast<float>(n); });
    case Dtype::f16:
      return fill<std::uint16_t>(bytes, f16);
    case Dtype::bf16:
      return fill<std::uint16_t>(bytes, bf16);
    default:
      return fill<std::uint8_t>(bytes, [](unsigned n) { return static_cast<std::uint8_t>(n); });
  }
}

ReductionSpeed measure(HandWritten const& by_hand, std::uint64_t bytes, double seconds) {
  Vector a(bytes), b(bytes), ours(bytes), theirs(bytes);
  fill(by_hand.dtype, {a.data(), bytes});
  fill(by_hand.dtype, {b.data(), bytes});
  auto const elements = bytes / element_bytes(by_hand.dtype);
  std::array<std::byte const*, 2> const sources{a.data(), b.data()};
  std::array<std::byte*, 1> const destinations{ours.data()};
  devices::Folder const folder(by_hand.op, by_hand.dtype);
  devices::Folding const folding{sources.data(), 2, destinations.data(), 1, elements, false};
  auto const chorus = [&] { folder.run(folding, {}); };
  auto const hand = [&] { by_hand.loop(theirs.data(), a.data(), b.data(), elements); };
  auto const result = duel(chorus, hand, seconds);
  auto const moved_GB = 3e-9 * static_cast<double>(bytes);
  return {by_hand.op,
          by_hand.dtype,
          bytes,
          moved_GB / result.ours_s,
          moved_GB / result.theirs_s,
          std::memcmp(ours.data(), theirs.data(), bytes) == 0};
}

}  // namespace

std::vector<ReductionSpeed> measure_reductions(std::vector<std::uint64_t> const& bytes, double seconds) {
  std::vector<ReductionSpeed> speeds;
  for (auto const& by_hand : hand_written_loops())
    for (auto const size : bytes) speeds.push_back(measure(by_hand, size, seconds));
  return speeds;
}

}  // namespace chorus::bench
