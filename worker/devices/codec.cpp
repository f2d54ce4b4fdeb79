#include "worker/devices/codec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "collectives/core/assert.hpp"
#include "worker/devices/kernels.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::devices {
namespace {

// Elements that are converted at a time where they pass through f32: whole blocks, in the first-level cache.
constexpr std::uint64_t elements_at_once = 8 * block_codes;
constexpr std::uint64_t unused_codes = block_bytes - block_codes;

// Results of so many bytes are written past the caches, which do not hold them until they are read.
constexpr std::uint64_t streams_from_bytes = 4u << 20;

struct Floats {
  alignas(64) std::array<float, elements_at_once + unused_codes> values;
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(values.data()); }
};

void to_floats(std::byte* floats, std::byte const* elements, std::uint64_t count, Dtype dtype) {
  if (dtype == Dtype::f32) {
    std::memcpy(floats, elements, count * sizeof(float));
  } else if (dtype == Dtype::f64) {
    for (std::uint64_t i = 0; i < count; ++i) {
      double wide = 0;
      std::memcpy(&wide, elements + i * sizeof wide, sizeof wide);
      auto const value = static_cast<float>(wide);
      std::memcpy(floats + i * sizeof value, &value, sizeof value);
    }
  } else {
    widen(dtype, floats, elements, count);
  }
}

EncodeBlocks encoder(Dtype block) { return best_kernels().encode[static_cast<std::size_t>(block)]; }

DecodeBlocks decoder(Dtype block) { return best_kernels().decode[static_cast<std::size_t>(block)]; }

void from_floats(std::byte* elements, std::byte const* floats, std::uint64_t count, Dtype dtype, bool streams) {
  if (dtype == Dtype::f32) {
    Reducer::copier(dtype).run({&floats, 1, &elements, 1, count, streams}, {});
  } else if (dtype == Dtype::f64) {
    for (std::uint64_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, floats + i * sizeof value, sizeof value);
      auto const wide = static_cast<double>(value);
      std::memcpy(elements + i * sizeof wide, &wide, sizeof wide);
    }
  } else {
    narrow(dtype, elements, floats, count);
  }
}

// Blocks of f32 whose neighbours can be touched: all but the last one or two.
std::uint64_t direct_blocks(std::uint64_t elements) {
  return elements < block_bytes ? 0 : (elements - unused_codes) / block_codes;
}

// Without a call of std::isfinite, so that loops over it are vectorized.
bool is_finite(float x) { return std::abs(x) <= std::numeric_limits<float>::max(); }

// Largest magnitude that is sent of a finite number.
float largest_sent(Dtype carrier) {
  constexpr float largest_bf16 = 3.38953139e38F;
  if (carrier == Dtype::f16) return 65504.0F;
  return carrier == Dtype::bf16 ? largest_bf16 : std::numeric_limits<float>::max();
}

}  // namespace

void Codec::encode(std::span<std::byte> codes, std::span<std::byte const> elements, std::span<float const> residual,
                   std::span<float> lost) const {
  auto const width = element_bytes(dtype_);
  auto const count = elements.size() / width;
  CHORUS_ASSERT(lost.size() == count && (residual.empty() || residual.size() == count), "a float per element");
  Codec const of_floats(format_, Dtype::f32);
  auto const limit = largest_sent(carrier_);
  Floats sums, sent;
  for (std::uint64_t done = 0; done < count; done += elements_at_once) {
    auto const some = std::min(count - done, elements_at_once);
    to_floats(sums.bytes(), elements.data() + done * width, some, dtype_);
    if (!residual.empty())
      for (std::uint64_t i = 0; i < some; ++i) sums.values[i] += residual[done + i];
    for (std::uint64_t i = 0; i < some; ++i) {
      auto const sum = sums.values[i];
      auto const limited = sum > limit ? limit : sum < -limit ? -limit : sum;
      sent.values[i] = is_finite(sum) ? limited : sum;
    }
    std::span const floats(sent.bytes(), some * sizeof(float));
    auto const here = codes.subspan(bytes(done), bytes(some));
    of_floats.encode(here, floats);
    of_floats.decode(floats, here);
    for (std::uint64_t i = 0; i < some; ++i)
      lost[done + i] = is_finite(sums.values[i]) ? sums.values[i] - sent.values[i] : 0.0F;
  }
}

void Codec::encode(std::span<std::byte> codes, std::span<std::byte const> elements) const {
  auto const width = element_bytes(dtype_);
  auto const count = elements.size() / width;
  CHORUS_ASSERT(codes.size() == bytes(count), "codes of these elements");
  bool const blocks = is_block(carrier_);
  std::uint64_t done = 0;
  if (dtype_ == Dtype::f32 && !blocks) return narrow(carrier_, codes.data(), elements.data(), count);
  if (dtype_ == Dtype::f32) {
    auto const direct = direct_blocks(count);
    encoder(carrier_)(codes.data(), elements.data(), direct);
    done = direct * block_codes;
  }
  Floats floats;
  for (; done < count; done += elements_at_once) {
    auto const some = std::min(count - done, elements_at_once);
    to_floats(floats.bytes(), elements.data() + done * width, some, dtype_);
    auto* const to = codes.data() + bytes(done);
    if (!blocks) {
      narrow(carrier_, to, floats.bytes(), some);
      continue;
    }
    std::fill(floats.values.begin() + static_cast<std::ptrdiff_t>(some), floats.values.end(), 0.0F);
    encoder(carrier_)(to, floats.bytes(), carriers(format_, some));
  }
}

void Codec::decode(std::span<std::byte> elements, std::span<std::byte const> codes) const {
  auto const width = element_bytes(dtype_);
  auto const count = elements.size() / width;
  CHORUS_ASSERT(codes.size() == bytes(count), "codes of these elements");
  bool const blocks = is_block(carrier_), streams = elements.size() >= streams_from_bytes;
  std::uint64_t done = 0;
  if (dtype_ == Dtype::f32 && !blocks) return widen(carrier_, elements.data(), codes.data(), count, streams);
  if (dtype_ == Dtype::f32 && !streams) {
    auto const direct = direct_blocks(count);
    decoder(carrier_)(elements.data(), codes.data(), direct);
    done = direct * block_codes;
  }
  Floats floats;
  for (; done < count; done += elements_at_once) {
    auto const some = std::min(count - done, elements_at_once);
    auto const* const from = codes.data() + bytes(done);
    if (blocks)
      decoder(carrier_)(floats.bytes(), from, carriers(format_, some));
    else
      widen(carrier_, floats.bytes(), from, some);
    from_floats(elements.data() + done * width, floats.bytes(), some, dtype_, streams);
  }
}

}  // namespace chorus::devices
