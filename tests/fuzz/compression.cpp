// Compressed gradients: whatever is accepted has the announced number of elements and is within the limit of bodies,
// and a sparse or a two-bit gradient is written back as it came.
#include "worker/parameters/compression/decode.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "worker/parameters/compression/encoder.hpp"

using namespace chorus;
using namespace chorus::parameters;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto const compression = all_compressions.at(input.byte() % all_compressions.size());
  // Small, or what the bytes themselves say: the length of an accepted message decides that.
  std::size_t const elements = input.number<std::uint16_t>() % 2048;
  // Never NaN by accident: an element that decode leaves out is seen.
  std::vector<float> gradient(elements, std::nanf("7"));
  auto const bytes = input.bytes();
  auto const decoded = decode(compression, bytes, gradient);
  if (decoded.has_error()) {
    CHORUS_ASSERT(!decoded.error().detail.empty(), "what is refused has a reason");
    return 0;
  }
  CHORUS_ASSERT(bytes.size() <= encoded_bytes_max(compression, elements), "the limit for bodies admits it");
  if (compression != Compression::two_bit || elements == 0) return 0;
  // Every element is 0 or plus or minus the threshold, so the encoder finds nothing to leave behind.
  float threshold = 0;
  std::memcpy(&threshold, bytes.data() + 8, sizeof threshold);
  for (auto const value : gradient)
    CHORUS_ASSERT(value == 0 || std::fabs(value) == threshold, "a code is nothing, plus or minus");
  auto encoder = GradientEncoder::make({compression, 1.0, threshold}, elements);
  CHORUS_ASSERT(encoder.has_value(), "a threshold that was accepted can be set");
  auto const again = encoder->encode(0, gradient);
  CHORUS_ASSERT(again.has_value() && std::equal(again->begin(), again->end(), bytes.begin(), bytes.end()),
                "what was decoded is encoded to the same bytes");
  return 0;
}
