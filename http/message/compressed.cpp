#include "http/message/compressed.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "base/ascii.hpp"
#include "collectives/core/assert.hpp"

namespace chorus::http {
namespace {

constexpr std::size_t gzip_worth_bytes = 1024;
constexpr std::size_t gzip_piece_bytes = 128 << 10;  // of uncompressed text; takes about a millisecond

// An answer being compressed; owned by the stream of its response.
class Gzip {
 public:
  explicit Gzip(SharedBytes text) : text_(std::move(text)) {
    constexpr int window_bits = 15 + 16;  // with the header and the trailer of gzip
    auto const begun =
        ::deflateInit2(&state_, Z_BEST_SPEED, Z_DEFLATED, window_bits, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
    if (begun != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() { ::deflateEnd(&state_); }
  Gzip(Gzip const&) = delete;
  Gzip& operator=(Gzip const&) = delete;

  // The next piece, "" at the end.
  std::string next() {
    std::string out;
    if (is_done_) return out;
    auto const part = text_.bytes.first(std::min(text_.bytes.size(), gzip_piece_bytes));
    text_.bytes = text_.bytes.subspan(part.size());
    is_done_ = text_.bytes.empty();
    // zlib only reads its input, but its type is not const.
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));
    state_.avail_in = static_cast<uInt>(part.size());
    std::array<char, 16384> room;
    do {
      state_.next_out = reinterpret_cast<Bytef*>(room.data());
      state_.avail_out = static_cast<uInt>(room.size());
      auto const result = ::deflate(&state_, is_done_ ? Z_FINISH : Z_SYNC_FLUSH);
      CHORUS_ASSERT(result != Z_STREAM_ERROR, "the state of zlib is sound");
      out.append(room.data(), room.size() - state_.avail_out);
    } while (state_.avail_out == 0);
    return out;
  }

 private:
  SharedBytes text_;
  z_stream state_{};
  bool is_done_ = false;
};

boost::asio::awaitable<std::string> next_piece(std::shared_ptr<Gzip> gzip) { co_return gzip->next(); }

bool is_text(std::string_view content_type) {
  auto const media = trimmed(content_type.substr(0, content_type.find(';')));
  return media.starts_with("text/") || media == "application/json" || media == "application/problem+json" ||
         media == "image/svg+xml";
}

SharedBytes taken_content(Response& response) {
  // Emptied, so that the payload is not sent as well.
  if (!response.payload.bytes.empty()) return std::exchange(response.payload, {});
  auto const text = std::make_shared<std::string>(std::move(response.body));
  return {text, std::as_bytes(std::span(*text))};
}

// False if the parameters, as in "gzip;q=0.5", set the weight to 0.
bool has_weight(std::string_view parameters) {
  auto const q = parameters.find("q=");
  if (q == std::string_view::npos) return true;
  double weight = 1;
  std::from_chars(parameters.data() + q + 2, parameters.data() + parameters.size(), weight);
  return weight > 0;
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  std::optional<bool> gzip, any;
  while (!accept_encoding.empty()) {
    auto const part = accept_encoding.substr(0, accept_encoding.find(','));
    auto const coding = trimmed(part.substr(0, part.find(';')));
    auto const wanted = has_weight(part.substr(std::min(part.size(), part.find(';'))));
    if (equals_ignoring_case(coding, "gzip") || equals_ignoring_case(coding, "x-gzip")) gzip = wanted;
    if (coding == "*") any = wanted;
    accept_encoding.remove_prefix(std::min(accept_encoding.size(), part.size() + 1));
  }
  return gzip.value_or(any.value_or(false));
}

void compress_if_wanted(Request const& request, Response& response) {
  auto& fields = response.fields;
  auto const bytes = response.payload.bytes.empty() ? response.body.size() : response.payload.bytes.size();
  bool const is_whole = !response.stream && response.status != 206 && !response.again && !response.upgrade;
  if (!is_whole || bytes < gzip_worth_bytes || fields.find("Content-Encoding") ||
      !is_text(fields.find("Content-Type").value_or("")))
    return;
  fields.add("Vary", "Accept-Encoding");
  if (!accepts_gzip(request.fields.find("Accept-Encoding").value_or(""))) return;
  fields.set("Content-Encoding", "gzip");
  if (auto const tag = fields.find("ETag"); tag && tag->starts_with('"')) fields.set("ETag", "W/" + std::string(*tag));
  auto const gzip = std::make_shared<Gzip>(taken_content(response));
  response.stream = [gzip] { return next_piece(gzip); };
}

}  // namespace chorus::http
