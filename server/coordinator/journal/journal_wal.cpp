#include "server/coordinator/journal/journal_wal.hpp"

#include <bit>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

namespace chorus::coordinator {
namespace {

// https://www.sqlite.org/fileformat2.html#the_write_ahead_log: numbers are big-endian; the lowest bit of the magic
// number tells in which byte order the checksum reads its words.
constexpr std::size_t header_bytes = 32;
constexpr std::size_t frame_header_bytes = 24;
constexpr std::uint32_t magic = 0x377f0682;

using Bytes = std::span<unsigned char const>;

std::uint32_t big_endian(Bytes bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
         std::uint32_t{bytes[at + 3]};
}

struct Checksum {
  std::uint32_t first = 0, second = 0;
  friend bool operator==(Checksum const&, Checksum const&) = default;

  void add(Bytes bytes, bool big) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += word(bytes, at, big) + second;
      second += word(bytes, at + 4, big) + first;
    }
  }
  static std::uint32_t word(Bytes bytes, std::size_t at, bool big) {
    auto const value = big_endian(bytes, at);
    return big ? value : __builtin_bswap32(value);
  }
};

Checksum checksum_at(Bytes bytes, std::size_t at) { return {big_endian(bytes, at), big_endian(bytes, at + 4)}; }

bool same_salts(Bytes header, Bytes frame) {
  return big_endian(header, 16) == big_endian(frame, 8) && big_endian(header, 20) == big_endian(frame, 12);
}

bool is_commit(Bytes frame) { return big_endian(frame, 4) != 0; }

// Checks the frames from the first broken one on. A crash leaves at most the end of one transaction there.
bool holds_more_than_a_crash_leaves(Bytes header, Bytes rest, std::size_t frame_bytes) {
  bool transaction_ended = false;
  for (; rest.size() >= frame_bytes; rest = rest.subspan(frame_bytes)) {
    if (!same_salts(header, rest)) continue;  // a frame of an earlier round of the log, or a broken one
    if (transaction_ended) return true;
    transaction_ended = is_commit(rest);
  }
  return false;
}

}  // namespace

std::optional<std::string> damage_of_log(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<unsigned char> const content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Bytes const all(content);
  if (all.size() <= header_bytes) return std::nullopt;  // no frame was ever written
  auto const header = all.first(header_bytes);
  auto const page_bytes = std::size_t{big_endian(header, 8)};
  bool const big = (big_endian(header, 0) & 1) != 0;
  Checksum sum;
  sum.add(header.first(24), big);
  if ((big_endian(header, 0) & ~std::uint32_t{1}) != magic || sum != checksum_at(header, 24) || page_bytes < 512 ||
      !std::has_single_bit(page_bytes))
    return "the header of its write-ahead log is damaged";
  auto const frame_bytes = frame_header_bytes + page_bytes;
  std::size_t whole = 0;
  for (auto rest = all.subspan(header_bytes); rest.size() >= frame_bytes; rest = rest.subspan(frame_bytes), ++whole) {
    auto const frame = rest.first(frame_bytes);
    sum.add(frame.first(8), big);
    sum.add(frame.subspan(frame_header_bytes), big);
    auto const is_sound = sum == checksum_at(frame, 16);
    if (same_salts(header, frame) && is_sound) continue;
    // The checksum does not cover the salts: if it fits, the frame belongs here, and only its salts have changed.
    if (!is_sound && !holds_more_than_a_crash_leaves(header, rest, frame_bytes)) return std::nullopt;
    return "frame " + std::to_string(whole) +
           " of its write-ahead log is damaged, and what follows is not the end of one "
           "write";
  }
  return std::nullopt;
}

}  // namespace chorus::coordinator
