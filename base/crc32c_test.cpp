#include "base/crc32c.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string_view>
#include <vector>

using namespace chorus::http;

namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::span<std::byte const> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("CRC32C of the vectors that RFC 3720 (iSCSI), appendix B.4, gives") {
  std::vector<std::byte> rising(32), falling(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = falling[31 - i] = static_cast<std::byte>(i);
  for (auto* crc : {crc32c, crc32c_by_tables}) {
    CHECK(crc(0, {}) == 0);
    CHECK(crc(0, std::vector(32, std::byte{0})) == 0x8a9136aa);
    CHECK(crc(0, std::vector(32, std::byte{0xff})) == 0x62a8ab43);
    CHECK(crc(0, rising) == 0x46dd794e);
    CHECK(crc(0, falling) == 0x113fdb5c);
    CHECK(crc(0, bytes_of("123456789")) == 0xe3069283);
  }
}

TEST_CASE("the instruction and the tables agree, however long the bytes and wherever they begin") {
  auto const bytes = some_bytes(40000);
  for (std::size_t size = 0; size <= bytes.size(); size += 1 + size / 40)
    for (std::size_t begin = 0; begin < 9 && begin + size <= bytes.size(); ++begin) {
      auto const part = std::span(bytes).subspan(begin, size);
      REQUIRE(crc32c(7, part) == crc32c_by_tables(7, part));
    }
}

TEST_CASE("parts in a row have the checksum of the whole") {
  auto const bytes = some_bytes(20000);
  auto const whole = crc32c(0, bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 1 + cut / 10)
    REQUIRE(crc32c(crc32c(0, std::span(bytes).first(cut)), std::span(bytes).subspan(cut)) == whole);
}

TEST_CASE("every changed bit changes the checksum") {
  auto bytes = some_bytes(1500);
  auto const whole = crc32c(0, bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    REQUIRE(crc32c(0, bytes) != whole);
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}
