#include "http/wire/chunk_decoder.hpp"

#include "collectives/core/assert.hpp"

namespace chorus::http {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

ChunkDecoder::State ChunkDecoder::state() const {
  switch (step_) {
    case Step::data:
      return State::data;
    case Step::done:
      return State::done;
    case Step::malformed:
      return State::malformed;
    default:
      return State::framing;
  }
}

std::size_t ChunkDecoder::feed(std::string_view bytes) {
  std::size_t eaten = 0;
  while (eaten < bytes.size() && state() == State::framing) eat(bytes[eaten++]);
  return eaten;
}

void ChunkDecoder::took(std::uint64_t bytes) {
  CHORUS_ASSERT(step_ == Step::data && bytes <= data_bytes_, "more data taken than the chunk has");
  data_bytes_ -= bytes;
  if (data_bytes_ == 0) step_ = Step::data_cr;
}

void ChunkDecoder::eat(char c) {
  switch (step_) {
    case Step::size_first:
    case Step::size:
      return eat_size(c);
    case Step::extension:
      if (c == '\r')
        step_ = Step::size_lf;
      else if (c == '\n')
        fail("a bare line feed in a chunk extension");
      else if (++extension_bytes_ > extension_bytes_max)
        fail("chunk extensions are too long");
      return;
    case Step::size_lf:
      return c == '\n' ? size_ended() : fail("a chunk size line does not end with CR LF");
    case Step::data_cr:
      if (c != '\r') return fail("a chunk is longer than its size");
      step_ = Step::data_lf;
      return;
    case Step::data_lf:
      if (c != '\n') return fail("a chunk is longer than its size");
      step_ = Step::size_first;
      return;
    case Step::trailer_first:
    case Step::trailer:
      if (c == '\r')
        step_ = step_ == Step::trailer_first ? Step::last_lf : Step::trailer_lf;
      else if (c == '\n')
        fail("a bare line feed in a trailer");
      else if (++trailer_bytes_ > trailer_bytes_max)
        fail("the trailers are too long");
      else
        step_ = Step::trailer;
      return;
    case Step::trailer_lf:
      if (c != '\n') return fail("a trailer line does not end with CR LF");
      step_ = Step::trailer_first;
      return;
    case Step::last_lf:
      if (c != '\n') return fail("the chunked body does not end with CR LF");
      step_ = Step::done;
      return;
    case Step::data:
    case Step::done:
    case Step::malformed:
      CHORUS_ASSERT(false, "not framing");
  }
}

void ChunkDecoder::eat_size(char c) {
  if (auto const digit = hex_value(c); digit >= 0) {
    size_digits_ = step_ == Step::size_first ? 1 : size_digits_ + 1;
    if (size_digits_ > size_digits_max) return fail("a chunk size is too large");
    data_bytes_ = data_bytes_ << 4 | static_cast<std::uint64_t>(digit);
    step_ = Step::size;
    return;
  }
  if (step_ == Step::size_first) return fail("a chunk size is not hexadecimal");
  if (c == '\r')
    step_ = Step::size_lf;
  else if (c == ';' || c == ' ' || c == '\t')
    step_ = Step::extension;
  else
    fail("a chunk size is not hexadecimal");
}

void ChunkDecoder::size_ended() {
  if (data_bytes_ == 0) {
    step_ = Step::trailer_first;
    return;
  }
  chunk_bytes_ += data_bytes_;
  if (++chunks_ > small_chunks_max && chunk_bytes_ / chunks_ < average_bytes_min)
    return fail("more than 65536 chunks, of fewer than 64 bytes on average");
  step_ = Step::data;
}

void ChunkDecoder::fail(std::string_view why) {
  step_ = Step::malformed;
  why_ = why;
}

}  // namespace chorus::http
