#include "http/wire/body_reader.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>

namespace chorus::http {

namespace asio = boost::asio;

bool BodyReader::finished() const {
  switch (framing_.kind) {
    case Framing::Kind::none:
      return true;
    case Framing::Kind::length:
      return left_bytes_ == 0;
    case Framing::Kind::chunked:
      return chunks_.state() == ChunkDecoder::State::done;
    case Framing::Kind::until_close:
      return closed_;
  }
  return true;
}

asio::awaitable<Wire::Moved> BodyReader::read_some(std::span<std::byte> destination) {
  if (finished()) co_return Wire::Moved{};
  if (framing_.kind == Framing::Kind::chunked) co_return co_await read_chunked(destination);
  if (framing_.kind == Framing::Kind::length)
    destination = destination.first(std::min<std::uint64_t>(destination.size(), left_bytes_));
  auto const moved = co_await wire_.read_some(destination);
  if (framing_.kind == Framing::Kind::length) {
    left_bytes_ -= moved.bytes;
  } else if (moved.error == HttpErrc::peer_closed && wire_.at_end()) {
    closed_ = true;
    co_return Wire::Moved{};
  }
  co_return moved;
}

asio::awaitable<Wire::Moved> BodyReader::read_chunked(std::span<std::byte> destination) {
  for (;;) {
    wire_.consume(chunks_.feed(wire_.buffered()));
    if (chunks_.state() == ChunkDecoder::State::done) co_return Wire::Moved{};
    if (chunks_.state() == ChunkDecoder::State::malformed) co_return Wire::Moved{0, HttpErrc::malformed};
    if (chunks_.state() == ChunkDecoder::State::data) break;
    if (auto const more = co_await wire_.receive(); more.error) co_return Wire::Moved{0, more.error};
  }
  auto const moved =
      co_await wire_.read_some(destination.first(std::min<std::uint64_t>(destination.size(), chunks_.data_bytes())));
  chunks_.took(moved.bytes);
  // Consumes framing that has already arrived, so that finished() becomes true as early as possible.
  wire_.consume(chunks_.feed(wire_.buffered()));
  co_return moved;
}

asio::awaitable<bool> BodyReader::discard(std::uint64_t limit_bytes) {
  if (framing_.kind == Framing::Kind::length && left_bytes_ > limit_bytes) co_return false;
  std::array<std::byte, 4096> unwanted;
  while (!finished()) {
    auto const moved = co_await read_some(unwanted);
    if (moved.error || moved.bytes > limit_bytes) co_return false;
    limit_bytes -= moved.bytes;
  }
  co_return true;
}

}  // namespace chorus::http
