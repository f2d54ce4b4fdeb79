// The body of one message on a wire, whatever says how long it is.
#pragma once

#include "http/chunk_decoder.hpp"
#include "http/framing.hpp"
#include "http/wire.hpp"

namespace chorus::http {

class BodyReader {
 public:
  // The wire outlives the reader.
  BodyReader(Wire& wire, Framing framing) : wire_(wire), framing_(framing), left_bytes_(framing.length) {}

  // At least one byte, or 0 without an error at the end of the body. The destination is not empty.
  // Errors: those of Wire; malformed for chunks that are none. peer_closed where the length promised more.
  boost::asio::awaitable<Wire::Moved> read_some(std::span<std::byte> destination);

  // Throws away what is left if that is at most `limit_bytes`. True: the wire stands at the next message.
  boost::asio::awaitable<bool> discard(std::uint64_t limit_bytes);

  [[nodiscard]] Framing const& framing() const { return framing_; }
  [[nodiscard]] std::uint64_t left_bytes() const { return left_bytes_; }  // of Framing::Kind::length
  [[nodiscard]] bool finished() const;
  [[nodiscard]] std::string_view why_malformed() const { return chunks_.why(); }

 private:
  boost::asio::awaitable<Wire::Moved> read_chunked(std::span<std::byte> destination);

  Wire& wire_;
  Framing framing_;
  std::uint64_t left_bytes_;
  ChunkDecoder chunks_;
  bool closed_ = false;  // the end of Framing::Kind::until_close
};

}  // namespace chorus::http
