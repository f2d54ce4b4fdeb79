// The chunked transfer coding (RFC 9112 section 7.1), as a state machine without I/O.
//
// The decoder consumes framing bytes only; the caller moves the data bytes itself, straight into place. Chunk
// extensions and trailers are dropped, and both are limited, as is the number of small chunks: a body of a million
// one-byte chunks or of endless extensions costs the sender more than the receiver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chorus::http {

class ChunkDecoder {
 public:
  static constexpr std::size_t small_chunks_max = 65536;  // beyond them, chunks have average_bytes_min on average
  static constexpr std::uint64_t average_bytes_min = 64;
  static constexpr std::size_t extension_bytes_max = 4096;  // of all chunks together
  static constexpr std::size_t trailer_bytes_max = 8192;

  enum class State : std::uint8_t { framing, data, done, malformed };

  // Consumes framing bytes until data begins, the body is done or malformed, or the input ends. Returns their number.
  std::size_t feed(std::string_view bytes);

  [[nodiscard]] State state() const;
  [[nodiscard]] std::uint64_t data_bytes() const { return data_bytes_; }  // rest of this chunk; in State::data
  void took(std::uint64_t bytes);  // data bytes that the caller has moved; at most data_bytes()
  [[nodiscard]] std::string_view why() const { return why_; }  // in State::malformed

 private:
  enum class Step : std::uint8_t {
    size_first,
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_first,
    trailer,
    trailer_lf,
    last_lf,
    done,
    malformed
  };

  void eat(char c);
  void eat_size(char c);
  void size_ended();
  void fail(std::string_view why);

  Step step_ = Step::size_first;
  static constexpr std::uint8_t size_digits_max =
      15;  // leading zeros count, so the size cannot overflow or go on for ever

  std::uint64_t data_bytes_ = 0;
  std::uint8_t size_digits_ = 0;
  std::size_t chunks_ = 0;
  std::uint64_t chunk_bytes_ = 0;  // of all chunks so far
  std::size_t extension_bytes_ = 0;
  std::size_t trailer_bytes_ = 0;
  std::string_view why_;
};

}  // namespace chorus::http
