// Codes of floats: any bytes decode to something, alike by every instruction set, and nothing is
// written beyond the elements. What was decoded and is encoded and decoded again stays within the bound of one
// encoding.
#include "worker/devices/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "worker/devices/kernels.hpp"

using namespace chorus;

namespace {

constexpr std::array dtypes{Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16};

void check_instruction_sets(Dtype block, std::vector<std::byte> const& codes) {
  auto const d = static_cast<std::size_t>(block);
  auto const blocks = codes.size() / block_bytes;
  std::vector<std::byte> first, sum;
  for (auto const* kernels : devices::runnable_kernels()) {
    if (kernels == nullptr) continue;
    std::vector<std::byte> values((blocks * block_codes + 4) * sizeof(float)), added(codes.size());
    kernels->decode[d](values.data(), codes.data(), blocks);
    std::byte const* const sources[] = {codes.data(), codes.data()};
    auto* const to = added.data();
    kernels->reduce[static_cast<std::size_t>(ReduceOp::avg)][d]({sources, 2, &to, 1, blocks}, {.divisor = 2});
    if (first.empty()) first = values, sum = added;
    CHORUS_ASSERT(first == values, "every instruction set decodes to the same bits");
    CHORUS_ASSERT(sum == added, "every instruction set adds to the same bits");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto const format = all_wire_formats.at(input.byte() % all_wire_formats.size());
  auto const dtype = dtypes.at(input.byte() % dtypes.size());
  auto const elements = std::size_t{input.number<std::uint16_t>()} % 2048;
  if (!has_format(dtype, format)) return 0;
  devices::Codec const codec(format, dtype);
  std::vector<std::byte> codes(codec.bytes(elements));
  std::ranges::copy(input.bytes().first(std::min(codes.size(), input.bytes().size())), codes.begin());
  std::vector<std::byte> values(elements * element_bytes(dtype) + 1);
  values.back() = std::byte{0x5a};
  codec.decode(std::span(values).first(values.size() - 1), codes);
  CHORUS_ASSERT(values.back() == std::byte{0x5a}, "nothing is written beyond the elements");
  if (is_block(codec.carrier()) && !codes.empty()) check_instruction_sets(codec.carrier(), codes);
  if (dtype != Dtype::f32 || format != WireFormat::int8) return 0;

  std::vector<float> decoded(elements), again(elements);
  if (elements > 0) std::memcpy(decoded.data(), values.data(), elements * sizeof(float));
  codec.encode(codes, std::as_bytes(std::span(decoded)));
  codec.decode(std::as_writable_bytes(std::span(again)), codes);
  for (std::size_t begin = 0; begin < elements; begin += block_codes) {
    auto const end = std::min(elements, begin + block_codes);
    double largest = 0;
    for (auto i = begin; i < end; ++i)
      if (std::isfinite(decoded[i])) largest = std::max(largest, std::abs(double{decoded[i]}));
    for (auto i = begin; i < end; ++i)
      CHORUS_ASSERT(std::isfinite(decoded[i])
                        ? std::abs(double{decoded[i]} - double{again[i]}) <= largest / 254 * (1 + 0x1p-14) + 0x1p-119
                        : std::isnan(again[i]),
                    "an encoding is within its bound, and NaN stays");
  }
  return 0;
}
