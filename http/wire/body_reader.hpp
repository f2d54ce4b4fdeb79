// Reads the body of one message from a wire, with any kind of framing.
#pragma once

#include "http/message/framing.hpp"
#include "http/wire/chunk_decoder.hpp"
#include "http/wire/wire.hpp"

namespace chorus::http {

class BodyReader {
 public:
  // The wire outlives the reader.
  BodyReader(Wire& wire, Framing framing) : wire_(wire), framing_(framing), left_bytes_(framing.length) {}

  // Reads at least one byte, or 0 without an error at the end of the body. The destination is not empty.
  // Errors: those of Wire; malformed for malformed chunks; peer_closed if the body ends before its announced length.
  boost::asio::awaitable<Wire::Moved> read_some(std::span<std::byte> destination);

  // Discards the rest if it has at most `limit_bytes`. Returns true if the wire is at the next message.
  boost::asio::awaitable<bool> discard(std::uint64_t limit_bytes);

  [[nodiscard]] Framing const& framing() const { return framing_; }
  [[nodiscard]] std::uint64_t left_bytes() const { return left_bytes_; }  // for Framing::Kind::length
  [[nodiscard]] bool finished() const;
  [[nodiscard]] std::string_view why_malformed() const { return chunks_.why(); }

 private:
  boost::asio::awaitable<Wire::Moved> read_chunked(std::span<std::byte> destination);

  Wire& wire_;
  Framing framing_;
  std::uint64_t left_bytes_;
  ChunkDecoder chunks_;
  bool closed_ = false;  // the connection has closed: end of a body with Framing::Kind::until_close
};

}  // namespace chorus::http
