#include "worker/bench/calibration/codec_rates.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "worker/devices/codec.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int passes = 9;

template <class Work>
double fastest_s(Work work) {
  auto fastest = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < passes; ++pass) {
    auto const begin = Clock::now();
    work();
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return fastest;
}

}  // namespace

api::FormatConstants measure_codec(WireFormat format, std::uint64_t vector_bytes) {
  devices::Codec const codec(format, Dtype::f32);
  std::vector<float> values(vector_bytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  auto const count = carriers(format, values.size());
  std::vector<std::byte> codes(codec.bytes(values.size()));
  // Wide partial sums of a block have a place for each of its bytes.
  auto const wide_floats = count * (is_block(codec.carrier()) ? element_bytes(codec.carrier()) : 1);
  std::vector<float> sum(wide_floats);
  auto const bytes_of = [](auto& floats) { return std::as_writable_bytes(std::span(floats)); };
  devices::Reducer const add(ReduceOp::sum, codec.carrier());
  auto* const result = bytes_of(sum).data();
  std::byte const* const operands[] = {result, codes.data()};
  auto const per_byte = 1 / static_cast<double>(values.size() * sizeof(float));
  api::FormatConstants rates;
  rates.encode_s_per_byte = fastest_s([&] { codec.encode(codes, bytes_of(values)); }) * per_byte;
  rates.decode_s_per_byte = fastest_s([&] { codec.decode(bytes_of(values), codes); }) * per_byte;
  rates.add_s_per_byte = fastest_s([&] {
                           add.run({operands, 2, &result, 1, count}, {.wide_source = true, .wide_results = true});
                         }) *
                         per_byte;
  return rates;
}

api::CodecConstants measure_codecs(std::uint64_t vector_bytes) {
  return {measure_codec(WireFormat::bf16, vector_bytes), measure_codec(WireFormat::f16, vector_bytes),
          measure_codec(WireFormat::int8, vector_bytes), measure_codec(WireFormat::fp8_e4m3, vector_bytes)};
}

}  // namespace chorus::bench
