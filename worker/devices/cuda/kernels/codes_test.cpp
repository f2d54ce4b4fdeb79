// Codes of floats in GPU memory, on the double and on every GPU of the host.
#include "worker/devices/cuda/kernels/code.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "worker/devices/codec.hpp"
#include "worker/devices/cuda/testing/every_gpu.hpp"
#include "worker/devices/cuda/testing/rig.hpp"

using namespace chorus;
using namespace chorus::devices;
using testing::Bytes;
using testing::on_every_gpu;
using testing::poison;
using testing::random_bytes;
using testing::Rig;
using testing::same;

namespace {

constexpr std::size_t guard = 64;

// Numbers of all sizes, subnormal ones and those beside half a step of int8 among them, NaN and infinities.
Bytes hard_elements(Dtype dtype, std::uint64_t elements, std::mt19937_64& random) {
  if (dtype != Dtype::f32) return random_bytes(elements * element_bytes(dtype), random);
  std::vector<float> values(elements);
  for (std::uint64_t block = 0; block * block_codes < elements; ++block) {
    auto const largest =
        std::ldexp(1.0F + static_cast<float>(random() % 4096) / 4096, static_cast<int>(random() % 277) - 149);
    for (auto i = block * block_codes; i < std::min(elements, (block + 1) * block_codes); ++i) {
      auto const half = static_cast<float>((static_cast<double>(random() % 254) - 126.5) * double{largest} / 127);
      values[i] = std::nextafter(half, random() % 2 == 0 ? -largest : largest);
      if (i % block_codes == 17) values[i] = largest;
      if (random() % 997 == 0) values[i] = std::numeric_limits<float>::infinity();
      if (random() % 997 == 0) values[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  Bytes bytes(elements * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Converts on the GPU, into poisoned memory. Returns what is there, with the guard behind it.
Bytes converted(GpuUnit& unit, CodeOrder order, Bytes const& from, std::size_t size) {
  Bytes found(size + guard, poison);
  auto const source = unit.acquire(from.size() + 1).value(), result = unit.acquire(found.size()).value();
  REQUIRE(unit.upload(source->bytes().data(), from).has_value());
  REQUIRE(unit.upload(result->bytes().data(), found).has_value());
  order.from = source->bytes().data();
  order.to = result->bytes().data();
  REQUIRE(unit.code({&order, 1}).has_value());
  REQUIRE(unit.download(found, result->bytes().data()).has_value());
  return found;
}

// Number of elements in which the two differ, and of bytes of the guard that were written.
std::size_t differences(Dtype dtype, Bytes const& expected, Bytes const& found) {
  auto const size = element_bytes(dtype);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < expected.size(); at += size)
    if (!same(dtype, expected.data() + at, found.data() + at)) ++wrong;
  for (auto at = expected.size(); at < found.size(); ++at)
    if (found[at] != poison) ++wrong;
  return wrong;
}

}  // namespace

TEST_CASE("a GPU encodes and decodes every dtype in every format to the bits of the CPU") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    std::mt19937_64 random(7);
    for (auto const format : all_wire_formats)
      for (auto const dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
        if (!has_format(dtype, format)) continue;
        for (std::uint64_t const elements : {0, 1, 31, 251, 252, 253, 504, 2017, 300'007}) {
          CAPTURE(gpu.info().name);
          CAPTURE(name(format));
          CAPTURE(name(dtype));
          CAPTURE(elements);
          Codec const codec(format, dtype);
          CodeOrder order{.format = format, .dtype = dtype, .elements = elements};
          auto const values = hard_elements(dtype, elements, random);
          Bytes codes(codec.bytes(elements));
          codec.encode(codes, values);
          CHECK(differences(codec.carrier(), codes, converted(*rig.unit, order, values, codes.size())) == 0);
          // Codes that no encoder makes, too.
          if (is_block(codec.carrier()))
            for (std::size_t at = 0; at < codes.size(); at += 3)
              if (at % block_bytes < block_codes) codes[at] = static_cast<std::byte>(random());
          order.decodes = true;
          Bytes back(values.size());
          codec.decode(back, codes);
          CHECK(differences(dtype, back, converted(*rig.unit, order, codes, back.size())) == 0);
        }
      }
  });
}

TEST_CASE("a failed conversion is told") {
  testing::GpuDouble gpu;
  Rig rig(gpu);
  auto const memory = rig.unit->acquire(4096).value();
  CodeOrder const order{.to = memory->bytes().data(), .from = memory->bytes().data() + 2048, .elements = 252};
  gpu.fail_after(0, GpuErrc::failed);
  CHECK(rig.unit->code({&order, 1}).error().code == GpuErrc::failed);
}
