#include "worker/bench/reductions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "worker/bench/duel.hpp"
#include "worker/bench/hand_written.hpp"
#include "worker/devices/fold.hpp"

namespace chorus::bench {
namespace {

constexpr std::uint32_t divisor = 3;  // no power of two, whose division is a shift

template <typename Element>
void fill(std::span<std::byte> bytes, std::uint32_t seed, Element (*convert)(std::uint32_t)) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(Element); ++i) {
    seed = seed * 1664525 + 1013904223;
    auto const element = convert(seed >> 8);
    std::memcpy(bytes.data() + i * sizeof element, &element, sizeof element);
  }
}

// Whole numbers from 1 to 61 with a sign, which every dtype has.
float number(std::uint32_t random) {
  auto const magnitude = static_cast<float>(random % 61 + 1);
  return (random & 0x10000) != 0 ? -magnitude : magnitude;
}
// Of a float's bits, those that bf16 keeps.
std::uint16_t bf16(std::uint32_t random) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number(random)) >> 16);
}
std::uint16_t f16(std::uint32_t random) {
  auto const magnitude = random % 61 + 1;
  auto const exponent = static_cast<unsigned>(std::bit_width(magnitude)) - 1;
  auto const sign = (random & 0x10000) >> 1;
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 0x3ff));
}

// Such numbers in floats, any bits in integers.
void fill(Dtype dtype, std::span<std::byte> bytes, std::uint32_t seed) {
  switch (dtype) {
    case Dtype::f64:
      return fill<double>(bytes, seed, [](std::uint32_t random) { return static_cast<double>(number(random)); });
    case Dtype::f32:
      return fill<float>(bytes, seed, number);
    case Dtype::f16:
      return fill<std::uint16_t>(bytes, seed, f16);
    case Dtype::bf16:
      return fill<std::uint16_t>(bytes, seed, bf16);
    default:
      return fill<std::uint8_t>(bytes, seed, [](std::uint32_t random) { return static_cast<std::uint8_t>(random); });
  }
}

// Two vectors to reduce, and where the result belongs: for all contenders the same memory, for not all memory is
// equally far.
struct Operands {
  Operands(Dtype dtype, std::uint64_t size) : bytes(size), a(size), b(size), result(size) {
    fill(dtype, {a.data(), size}, 1);
    fill(dtype, {b.data(), size}, 2);
  }
  std::uint64_t bytes;
  Vector a, b, result;
};

class Contest {
 public:
  Contest(ReduceOp op, Dtype dtype, std::span<HandWritten::Loop const> loops, Operands& operands, bool streams)
      : op_(op), dtype_(dtype), loops_(loops), operands_(operands), streams_(streams), folder_(op, dtype) {}

  [[nodiscard]] ReductionSpeed measure(double seconds) {
    std::vector<double> ours_s;
    std::vector<std::vector<double>> theirs_s(loops_.size());
    auto const ours = [&] { fold(); };
    auto const once = seconds_of(1, ours);
    auto const in_turn = seconds / static_cast<double>(turns * (1 + loops_.size()));
    auto const passes = std::max<std::uint64_t>(static_cast<std::uint64_t>(in_turn / once), 1);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      ours_s.push_back(seconds_of(passes, ours));
      for (std::size_t l = 0; l < loops_.size(); ++l)
        theirs_s[l].push_back(seconds_of(passes, [&] { run(loops_[l]); }));
    }
    auto const& best = *std::ranges::min_element(theirs_s, {}, [](auto const& times) { return median(times); });
    std::vector<double> ratios;
    for (std::size_t turn = 0; turn < turns; ++turn) ratios.push_back(best[turn] / ours_s[turn]);
    auto const moved_GB = 3e-9 * static_cast<double>(operands_.bytes);
    return {op_, dtype_, operands_.bytes, streams_, moved_GB / median(ours_s), moved_GB / median(best), median(ratios),
            true};
  }

  [[nodiscard]] bool has_same_bits() {
    fold();
    std::vector<std::byte> const ours(operands_.result.data(), operands_.result.data() + operands_.bytes);
    return std::ranges::all_of(loops_, [&](HandWritten::Loop loop) {
      std::memset(operands_.result.data(), 0x55, operands_.bytes);
      run(loop);
      return std::memcmp(ours.data(), operands_.result.data(), operands_.bytes) == 0;
    });
  }

 private:
  static constexpr std::size_t turns = 21;

  [[nodiscard]] std::uint64_t elements() const { return operands_.bytes / element_bytes(dtype_); }
  void fold() {
    std::array<std::byte const*, 2> const sources{operands_.a.data(), operands_.b.data()};
    std::array<std::byte*, 1> const destinations{operands_.result.data()};
    folder_.run({sources.data(), 2, destinations.data(), 1, elements(), streams_}, {.divisor = divisor});
  }
  void run(HandWritten::Loop loop) {
    loop(operands_.result.data(), operands_.a.data(), operands_.b.data(), elements(), divisor);
  }

  ReduceOp op_;
  Dtype dtype_;
  std::span<HandWritten::Loop const> loops_;
  Operands& operands_;
  bool streams_;
  devices::Folder folder_;
};

ReductionSpeed measure(ReduceOp op, Dtype dtype, std::span<HandWritten::Loop const> loops, Operands& operands,
                       bool streams, double seconds) {
  Contest contest(op, dtype, loops, operands, streams);
  bool const same_bits = contest.has_same_bits();
  std::vector<ReductionSpeed> speeds{contest.measure(seconds)};
  if (!speeds.front().is_fast_enough())
    for (int again = 0; again < 2; ++again) speeds.push_back(contest.measure(seconds));
  std::ranges::sort(speeds, {}, &ReductionSpeed::ratio);
  auto result = speeds[speeds.size() / 2];
  result.same_bits = same_bits;
  return result;
}

}  // namespace

bool measure_reductions(std::vector<std::uint64_t> const& bytes, double seconds,
                        std::function<void(ReductionSpeed const&)> const& visit) {
  auto const all = hand_written_loops();
  for (auto const dtype : all_dtypes)
    for (auto const size : bytes) {
      Operands operands(dtype, size);
      for (auto const op : all_reduce_ops) {
        std::vector<HandWritten::Loop> loops, streaming;
        for (auto const& each : all) {
          if (each.op != op || each.dtype != dtype) continue;
          loops.push_back(each.loop);
          if (each.streaming != nullptr) streaming.push_back(each.streaming);
        }
        if (loops.empty()) continue;
        visit(measure(op, dtype, loops, operands, false, seconds));
        if (size >= streams_too_from_bytes && !streaming.empty())
          visit(measure(op, dtype, streaming, operands, true, seconds));
      }
    }
  return !all.empty();
}

}  // namespace chorus::bench
