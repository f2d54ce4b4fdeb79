// The chunked transfer coding: what comes out does not depend on how the bytes were cut, and never more than goes in.
#include "http/wire/chunk_decoder.hpp"

#include <string>

#include "tests/fuzz/input.hpp"

using chorus::http::ChunkDecoder;

namespace {

struct Decoded {
  std::string data;
  std::size_t taken = 0;  // of the stream
  ChunkDecoder::State state = ChunkDecoder::State::framing;
  std::string why;
  friend bool operator==(Decoded const&, Decoded const&) = default;
};

Decoded decode(std::string_view stream, std::size_t piece_bytes) {
  ChunkDecoder decoder;
  Decoded result;
  while (result.taken < stream.size()) {
    auto piece = stream.substr(result.taken, piece_bytes);
    while (!piece.empty()) {
      auto const state = decoder.state();
      if (state == ChunkDecoder::State::done || state == ChunkDecoder::State::malformed) break;
      std::size_t bytes = 0;
      if (state == ChunkDecoder::State::data) {
        CHORUS_ASSERT(decoder.data_bytes() > 0, "a chunk with data has bytes left");
        bytes = static_cast<std::size_t>(std::min<std::uint64_t>(decoder.data_bytes(), piece.size()));
        result.data += piece.substr(0, bytes);
        decoder.took(bytes);
      } else {
        bytes = decoder.feed(piece);
        CHORUS_ASSERT(bytes > 0 && bytes <= piece.size(), "framing is eaten, and only what there is");
      }
      piece.remove_prefix(bytes);
      result.taken += bytes;
    }
    if (!piece.empty()) break;
  }
  result.state = decoder.state();
  result.why = decoder.why();
  CHORUS_ASSERT((result.state == ChunkDecoder::State::malformed) == !result.why.empty(),
                "what is refused has a reason");
  return result;
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  chorus::fuzz::Input input(data, size);
  auto const piece_bytes = std::size_t{1} + input.byte() % 7;
  auto const whole = decode(input.text(), std::string_view::npos);
  CHORUS_ASSERT(decode(input.text(), piece_bytes) == whole, "how a stream is cut does not matter");
  CHORUS_ASSERT(whole.data.size() <= whole.taken, "no more data than bytes");
  return 0;
}
