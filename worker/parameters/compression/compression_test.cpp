#include "worker/parameters/compression/compression.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>

#include "worker/parameters/compression/decode.hpp"
#include "worker/parameters/compression/encoder.hpp"
#include "worker/parameters/compression/errc.hpp"

using namespace chorus;
using namespace chorus::parameters;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

CompressionSettings settings_of(Compression compression, double fraction = 0.1, float threshold = 0.5F) {
  return {compression, fraction, threshold};
}

GradientEncoder encoder(CompressionSettings settings, std::uint64_t elements) {
  return GradientEncoder::make(settings, elements).value();
}

Bytes encoded(GradientEncoder& encoder, Floats const& gradient, std::uint64_t first = 0) {
  auto const bytes = encoder.encode(first, gradient).value();
  return {bytes.begin(), bytes.end()};
}

Floats decoded(Compression compression, Bytes const& bytes, std::size_t elements) {
  Floats gradient(elements, not_a_number);
  REQUIRE(decode(compression, bytes, gradient).has_value());
  return gradient;
}

std::string refusal(Compression compression, Bytes const& bytes, std::size_t elements) {
  Floats gradient(elements);
  auto const status = decode(compression, bytes, gradient);
  REQUIRE(status.has_error());
  return status.error().code.message();
}

// "..." stands for the codes of a block of five elements that are not used.
Bytes from_hex(std::string const& text) {
  auto const zeros = std::string(2 * 247, '0');
  Bytes bytes;
  std::istringstream words(std::regex_replace(text, std::regex(R"(\.\.\.)"), zeros));
  for (std::string word; words >> word;)
    for (std::size_t i = 0; i + 1 < word.size(); i += 2) {
      auto const digit = [&](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
      bytes.push_back(static_cast<std::byte>(digit(word[i]) * 16 + digit(word[i + 1])));
    }
  return bytes;
}

// Multiples of 1/64 up to 4: sums of thousands are exact in f32.
Floats dyadic_gradient(std::size_t elements, std::uint64_t seed) {
  Floats gradient(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    auto const mixed = (seed * 1000003 + i + 1) * 0x9e3779b97f4a7c15u;
    gradient[i] = static_cast<float>(static_cast<int>(mixed >> 40) % 512 - 256) / 64;
  }
  return gradient;
}

}  // namespace

TEST_CASE("decoded gradients plus the residual equal the pushed gradients exactly, after any number of pushes") {
  for (auto const& settings :
       {settings_of(Compression::f16), settings_of(Compression::bf16), settings_of(Compression::top_k, 0.05),
        settings_of(Compression::top_k, 1), settings_of(Compression::two_bit, 0, 4.0F)}) {
    INFO(std::string(name(settings.compression)));
    constexpr std::size_t elements = 203;
    auto client = encoder(settings, elements);
    std::vector<double> pushed(elements), arrived(elements);
    for (std::uint64_t step = 0; step < 500; ++step) {
      auto const gradient = dyadic_gradient(elements, step);
      auto const received = decoded(settings.compression, encoded(client, gradient), elements);
      for (std::size_t i = 0; i < elements; ++i) {
        pushed[i] += gradient[i];
        arrived[i] += received[i];
        REQUIRE(arrived[i] + client.residual()[i] == pushed[i]);
      }
    }
  }
}

TEST_CASE("int8 sends everything in the end, but for the roundings of the sums with the residual") {
  constexpr std::size_t elements = 600, pushes = 500;
  auto client = encoder(settings_of(Compression::int8), elements);
  std::vector<double> pushed(elements), arrived(elements);
  for (std::uint64_t step = 0; step < pushes; ++step) {
    auto const gradient = dyadic_gradient(elements, step);
    auto const received = decoded(Compression::int8, encoded(client, gradient), elements);
    for (std::size_t i = 0; i < elements; ++i) {
      pushed[i] += gradient[i];
      arrived[i] += received[i];
      REQUIRE(std::abs(client.residual()[i]) <= 4.1 / 254);
      REQUIRE(std::abs(arrived[i] + client.residual()[i] - pushed[i]) <= pushes * 8 * 0x1p-24);
    }
  }
}

TEST_CASE("int8 refuses scales that are negative or not finite, and codes after the last element") {
  auto client = encoder(settings_of(Compression::int8), 3);
  auto const right = encoded(client, {1, -2, 3});
  REQUIRE(right.size() == 256);
  auto const with = [&](std::size_t at, unsigned value) {
    auto changed = right;
    changed[at] = static_cast<std::byte>(value);
    return changed;
  };
  CHECK(refusal(Compression::int8, with(255, 0xbc), 3) == "bad scale");
  auto infinite = with(255, 0x7f);
  infinite[254] = std::byte{0x80};
  CHECK(refusal(Compression::int8, infinite, 3) == "bad scale");
  CHECK(refusal(Compression::int8, with(3, 1), 3) == "bad code");
  CHECK(refusal(Compression::int8, with(251, 1), 3) == "bad code");
  CHECK(std::isnan(decoded(Compression::int8, with(1, 0x80), 3)[1]));
}

TEST_CASE("f16 and bf16 round to nearest, and a number that is too large is sent in several pushes") {
  auto client = encoder(settings_of(Compression::f16), 2);
  CHECK(decoded(Compression::f16, encoded(client, {1.0F + 0x1p-12F, 100000}), 2) == Floats{1, 65504});
  CHECK(client.residual()[0] == 0x1p-12F);
  CHECK(decoded(Compression::f16, encoded(client, {0, 0}), 2)[1] == 34496);
  CHECK(client.residual()[1] == 0);
}

TEST_CASE("top_k sends the largest elements, the first of equal ones, and the others later") {
  auto client = encoder(settings_of(Compression::top_k, 0.5), 6);
  CHECK(decoded(Compression::top_k, encoded(client, {1, -5, 2, -2, 2, 0}), 6) == Floats{0, -5, 2, -2, 0, 0});
  CHECK(decoded(Compression::top_k, encoded(client, {1, 0, 0, 0, 0, 0}), 6) == Floats{2, 0, 0, 0, 2, 0});
  CHECK(Floats(client.residual().begin(), client.residual().end()) == Floats(6));
}

TEST_CASE("top_k sends the elements that sorting would choose, with any ties") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const elements = static_cast<std::size_t>(seed % 37 + 1);
    auto gradient = dyadic_gradient(elements, seed);
    for (auto& x : gradient) x = std::trunc(x);  // few different magnitudes
    std::vector<std::size_t> order(elements);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(-std::abs(gradient[a]), a) < std::pair(-std::abs(gradient[b]), b);
    });
    auto const fraction = static_cast<double>(seed % 10 + 1) / 10;
    Floats expected(elements);
    auto const count = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(elements)));
    for (std::size_t i = 0; i < count; ++i) expected[order[i]] = gradient[order[i]];
    auto client = encoder(settings_of(Compression::top_k, fraction), elements);
    auto const bytes = encoded(client, gradient);
    CHECK(bytes.size() == 16 + 8 * count);
    CHECK(decoded(Compression::top_k, bytes, elements) == expected);
  }
}

TEST_CASE("two_bit sends one magnitude, and small gradients when they have added up") {
  auto client = encoder(settings_of(Compression::two_bit, 0, 1), 5);
  CHECK(decoded(Compression::two_bit, encoded(client, {0.5F, -0.75F, 1, -3, 0}), 5) == Floats{0, 0, 1, -1, 0});
  CHECK(decoded(Compression::two_bit, encoded(client, {0.5F, -0.75F, 0, 0, 0}), 5) == Floats{1, -1, 0, -1, 0});
}

TEST_CASE("the parts of a parameter keep their residuals apart") {
  auto client = encoder(settings_of(Compression::two_bit, 0, 1), 6);
  encoded(client, {0.25F, 0.5F}, 0);
  encoded(client, {0.75F, 0.5F, 2}, 3);
  CHECK(Floats(client.residual().begin(), client.residual().end()) == Floats{0.25F, 0.5F, 0, 0.75F, 0.5F, 1});
}

TEST_CASE("a non-finite element arrives, and leaves no residual") {
  for (auto const compression : {Compression::f16, Compression::bf16, Compression::top_k}) {
    auto client = encoder(settings_of(compression, 0.5), 4);
    auto const received = decoded(compression, encoded(client, {1, not_a_number, -infinity, 2}), 4);
    CHECK(std::isnan(received[1]));
    CHECK(received[2] == -infinity);
    for (auto const rest : client.residual()) CHECK(std::isfinite(rest));
  }
  auto blocks = encoder(settings_of(Compression::int8), 4);
  auto const received = decoded(Compression::int8, encoded(blocks, {1, not_a_number, -infinity, 2}), 4);
  CHECK(std::isnan(received[1]));
  CHECK(std::isnan(received[2]));
  CHECK(received[3] == 2);
  CHECK(blocks.residual()[1] == 0);
  CHECK(blocks.residual()[2] == 0);
  auto client = encoder(settings_of(Compression::two_bit), 2);
  encoded(client, {0.25F, 0});
  CHECK(client.encode(0, Floats{1, not_a_number}).error().code == CompressionErrc::nonfinite);
  CHECK(client.residual()[0] == 0.25F);
}

TEST_CASE("invalid settings are refused") {
  for (auto const& wrong : {settings_of(Compression::top_k, 0), settings_of(Compression::top_k, 1.5),
                            settings_of(Compression::top_k, std::nan("")), settings_of(Compression::two_bit, 0, 0),
                            settings_of(Compression::two_bit, 0, -1), settings_of(Compression::two_bit, 0, infinity)})
    CHECK(GradientEncoder::make(wrong, 4).error().code == CompressionErrc::bad_settings);
}

TEST_CASE("a gradient of no elements is sent and decoded") {
  for (auto const compression : all_compressions) {
    auto client = encoder(settings_of(compression), 0);
    CHECK(decoded(compression, encoded(client, {}), 0).empty());
  }
}

TEST_CASE("names are those of the requests") {
  for (auto const compression : all_compressions) CHECK(parse_compression(name(compression)) == compression);
  CHECK_FALSE(parse_compression("gzip"));
  CHECK_FALSE(parse_compression(""));
}

TEST_CASE("lengths that do not fit are refused, whichever they are") {
  for (auto const compression : all_compressions) {
    auto client = encoder(settings_of(compression, 0.5), 9);
    auto const right = encoded(client, Floats(9, 1));
    CHECK(right.size() <= encoded_bytes_max(compression, 9));
    for (std::size_t size = 0; size < right.size() + 9; ++size) {
      auto wrong = right;
      wrong.resize(size);
      Floats gradient(9);
      CHECK(decode(compression, wrong, gradient).has_value() == (size == right.size()));
    }
    Floats others(8);
    CHECK(decode(compression, right, others).has_error());
  }
}

TEST_CASE("top_k refuses indices that are out of range, repeated or not in order, and counts beyond the elements") {
  auto const header = std::string("04000000 00000000 02000000 00000000 ");
  auto const values = std::string(" 0000803f 0000803f");
  CHECK(decoded(Compression::top_k, from_hex(header + "00000000 03000000" + values), 4) == Floats{1, 0, 0, 1});
  CHECK(refusal(Compression::top_k, from_hex(header + "00000000 04000000" + values), 4) == "bad index");
  CHECK(refusal(Compression::top_k, from_hex(header + "00000000 ffffffff" + values), 4) == "bad index");
  CHECK(refusal(Compression::top_k, from_hex(header + "01000000 01000000" + values), 4) == "bad index");
  CHECK(refusal(Compression::top_k, from_hex(header + "03000000 01000000" + values), 4) == "bad index");
  CHECK(refusal(Compression::top_k, from_hex(header + "00000000 03000000" + values), 5) == "bad header");
  CHECK(refusal(Compression::top_k, from_hex("04000000 00000000 05000000 00000000"), 4) == "bad header");
  // A count whose bytes would wrap around 64 bits.
  CHECK(refusal(Compression::top_k, from_hex("04000000 00000000 00000000 00000020"), 4) == "bad header");
}

TEST_CASE("two_bit refuses the invalid code, bits beyond the end and invalid thresholds") {
  auto const body = [](std::string const& threshold, std::string const& rest) {
    return from_hex("05000000 00000000 " + threshold + " " + rest);
  };
  CHECK(decoded(Compression::two_bit, body("0000003f", "00000000 81 01"), 5) == Floats{0.5F, 0, 0, -0.5F, 0.5F});
  CHECK(refusal(Compression::two_bit, body("0000003f", "00000000 c1 01"), 5) == "bad code");
  CHECK(refusal(Compression::two_bit, body("0000003f", "00000000 81 03"), 5) == "bad code");
  CHECK(refusal(Compression::two_bit, body("0000003f", "00000000 81 05"), 5) == "bad code");
  CHECK(refusal(Compression::two_bit, body("0000003f", "01000000 81 01"), 5) == "bad header");
  for (auto const* threshold : {"00000000", "000000bf", "0000807f", "0000c07f"})
    CHECK(refusal(Compression::two_bit, body(threshold, "00000000 81 01"), 5) == "bad header");
}

TEST_CASE("codes at an odd address are decoded like any others") {
  for (auto const compression : {Compression::f16, Compression::bf16, Compression::int8}) {
    auto const gradient = dyadic_gradient(5000, 3);  // more than one block
    auto sender = encoder(settings_of(compression), gradient.size());
    auto const bytes = encoded(sender, gradient);
    Bytes shifted(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
    Floats result(gradient.size(), not_a_number);
    REQUIRE(decode(compression, std::span(shifted).subspan(1), result).has_value());
    CHECK(result == decoded(compression, bytes, gradient.size()));
  }
}

// Changes every byte of a small message to every value: the message is refused, or is some gradient.
TEST_CASE("no byte can be changed into a crash") {
  for (auto const compression : {Compression::top_k, Compression::two_bit, Compression::int8}) {
    auto client = encoder(settings_of(compression, 0.5), 7);
    auto const right = encoded(client, {3, -1, 0, 0.25F, -8, 2, 1});
    for (std::size_t at = 0; at < right.size(); ++at)
      for (unsigned value = 0; value < 256; ++value) {
        auto changed = right;
        changed[at] = static_cast<std::byte>(value);
        Floats gradient(7);
        auto const status = decode(compression, changed, gradient);
        CHECK((status.has_value() || status.error().code.category() == compression_category()));
      }
  }
}

// The gradient of docs/reference/gradient_compression.md.
TEST_CASE("the encoder gives the example of the format's page") {
  std::ostringstream stream;
  stream << std::ifstream(std::string(CHORUS_SOURCE_DIR) + "/docs/reference/gradient_compression.md").rdbuf();
  auto const page = stream.str();
  auto const hex_of = [&](Compression compression) {
    auto const begin = page.find("\n" + std::string(name(compression)) + ": ");
    REQUIRE(begin != std::string::npos);
    auto const text = begin + name(compression).size() + 3;
    return from_hex(page.substr(text, page.find('\n', text) - text));
  };
  for (auto const compression : all_compressions) {
    auto client = encoder(settings_of(compression, 0.4, 1), 5);
    CHECK(encoded(client, {0.5F, -2, 0.0625F, 1, -0.25F}) == hex_of(compression));
  }
}

// Gradient descent by decoded gradients, on a quadratic function whose curvatures differ by a factor of 100.
TEST_CASE("a gradient with more infinities than top_k sends leaves none to the next gradients") {
  auto top_k = encoder(settings_of(Compression::top_k, 0.25), 8);
  auto const first =
      decoded(Compression::top_k, encoded(top_k, {infinity, 1, -infinity, not_a_number, 2, infinity, 3, 4}), 8);
  CHECK(std::ranges::count_if(first, [](float x) { return !std::isfinite(x); }) == 2);
  CHECK(std::ranges::all_of(top_k.residual(), [](float x) { return std::isfinite(x); }));
  CHECK(decoded(Compression::top_k, encoded(top_k, {0, 0, 5, 0, 0, 0, 0, 0}), 8) == Floats{0, 0, 5, 0, 0, 0, 0, 4});
}

TEST_CASE("training converges with every compression, as it does without") {
  for (auto const& settings :
       {settings_of(Compression::f16), settings_of(Compression::bf16), settings_of(Compression::top_k, 0.05),
        settings_of(Compression::two_bit, 0, 0.25F), settings_of(Compression::int8)}) {
    INFO(std::string(name(settings.compression)));
    constexpr std::size_t elements = 100;
    auto client = encoder(settings, elements);
    Floats w(elements), gradient(elements);
    auto const target = dyadic_gradient(elements, 1);
    for (int step = 0; step < 20000; ++step) {
      for (std::size_t i = 0; i < elements; ++i)
        gradient[i] = (0.01F + static_cast<float>(i) / elements) * (w[i] - target[i]);
      auto const received = decoded(settings.compression, encoded(client, gradient), elements);
      for (std::size_t i = 0; i < elements; ++i) w[i] -= 0.05F * received[i];
    }
    for (std::size_t i = 0; i < elements; ++i) REQUIRE(std::abs(w[i] - target[i]) < 0.02F);
  }
}
