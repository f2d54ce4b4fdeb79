#include "http/server/session_body.hpp"

#include <algorithm>

#include "base/crc32c.hpp"

namespace chorus::http {

namespace asio = boost::asio;

SessionBody::SessionBody(Wire& wire, Receptions& receptions, bool& only_waits, Framing framing, bool expects_continue,
                         Patience patience, std::optional<std::uint32_t> crc32c)
    : wire_(wire),
      receptions_(receptions),
      only_waits_(only_waits),
      reader_(wire, framing),
      patience_(patience),
      crc_expected_(crc32c),
      continue_expected_(expects_continue) {}

std::optional<std::uint64_t> SessionBody::length() const {
  if (reader_.framing().kind == Framing::Kind::chunked) return std::nullopt;
  return reader_.framing().length;
}

asio::awaitable<std::optional<Problem>> SessionBody::begin() {
  if (broken_) co_return Problem(ProblemCode::bad_request, "the body could not be read before");
  if (std::exchange(begun_, true)) co_return std::nullopt;
  wire_.set_patience(patience_);
  // The received bytes already hold the body of a client that did not wait, so it needs no interim answer.
  if (!std::exchange(continue_expected_, false) || !wire_.buffered().empty() || reader_.finished())
    co_return std::nullopt;
  auto const sent = co_await wire_.write("HTTP/1.1 100 Continue\r\n\r\n", {});
  if (sent.error) co_return failed(sent.error);
  co_return std::nullopt;
}

Problem SessionBody::failed(std::error_code error) {
  broken_ = true;
  auto const after = " after " + std::to_string(read_bytes_) + " bytes";
  if (error == HttpErrc::timed_out)
    return {ProblemCode::request_timeout, "the body stalled or came too slowly" + after};
  if (error == HttpErrc::malformed) return {ProblemCode::bad_request, std::string(reader_.why_malformed()) + after};
  return {ProblemCode::bad_request, "the body ended early" + after + ": " + wire_.reason()};
}

void SessionBody::took(std::span<std::byte const> bytes) {
  read_bytes_ += bytes.size();
  if (crc_expected_) crc_ = crc32c(crc_, bytes);
}

Problem SessionBody::changed() {
  return {ProblemCode::digest_mismatch, "the body was changed on its way: its CRC32C is another"};
}

asio::awaitable<Checked<std::size_t>> SessionBody::read_exactly(std::span<std::byte> destination) {
  auto const wanted = destination.size();
  if (auto const kind = reader_.framing().kind; kind != Framing::Kind::chunked && reader_.left_bytes() < wanted)
    co_return Problem(ProblemCode::bad_request, "the body has " + std::to_string(reader_.left_bytes()) +
                                                    " bytes left, expected " + std::to_string(wanted));
  if (auto problem = co_await begin()) co_return std::move(*problem);
  while (!destination.empty()) {
    auto const moved = co_await reader_.read_some(destination);
    took(destination.first(moved.bytes));
    if (moved.error) co_return failed(moved.error);
    if (moved.bytes == 0)
      co_return Problem(ProblemCode::length_mismatch, "the body ended after " + std::to_string(read_bytes_) +
                                                          " bytes, expected were at least " +
                                                          std::to_string(read_bytes_ + destination.size()));
    destination = destination.subspan(moved.bytes);
  }
  if (was_changed()) co_return changed();
  co_return wanted;
}

asio::awaitable<std::optional<Problem>> SessionBody::expect_end() {
  if (auto problem = co_await begin()) co_return problem;
  std::byte next{};
  auto const moved = co_await reader_.read_some({&next, 1});
  if (moved.error) co_return failed(moved.error);
  took({&next, moved.bytes});
  if (was_changed()) co_return changed();
  if (moved.bytes == 0) co_return std::nullopt;
  co_return Problem(ProblemCode::length_mismatch,
                    "the body goes on after " + std::to_string(read_bytes_ - 1) + " bytes, which are all of it");
}

asio::awaitable<Checked<std::string>> SessionBody::read_all(std::size_t limit_bytes) {
  auto const too_large = [limit_bytes] {
    return Problem(ProblemCode::payload_too_large, "the body has more than " + std::to_string(limit_bytes) + " bytes");
  };
  constexpr std::size_t first_bytes_max = 16384;
  auto const chunked = reader_.framing().kind == Framing::Kind::chunked;
  auto const first_bytes = chunked ? first_bytes_max : std::min<std::size_t>(reader_.left_bytes(), first_bytes_max);
  if (!chunked && reader_.left_bytes() > limit_bytes) co_return too_large();
  if (auto problem = co_await begin()) co_return std::move(*problem);
  // The buffer grows with the bytes that arrive, not with the announced length.
  std::string text;
  std::size_t filled = 0;
  while (!reader_.finished()) {
    if (filled == text.size()) text.resize(std::min(std::max(2 * filled, first_bytes), limit_bytes + 1));
    auto const room = std::as_writable_bytes(std::span(text).subspan(filled));
    auto const moved = co_await reader_.read_some(room);
    filled += moved.bytes;
    took(room.first(moved.bytes));
    if (moved.error) co_return failed(moved.error);
    if (filled > limit_bytes) {
      broken_ = true;  // the size of the rest is unknown
      co_return too_large();
    }
  }
  if (was_changed()) co_return changed();
  text.resize(filled);
  co_return text;
}

std::shared_ptr<Reception> SessionBody::reception() {
  if (!reception_) reception_ = receptions_.begin();
  return reception_;
}

bool SessionBody::can_be_skipped(std::uint64_t limit_bytes) const {
  if (was_changed()) return false;  // the bytes that follow are not trusted either
  if (reader_.finished()) return true;
  return !broken_ && !continue_expected_ &&
         (reader_.framing().kind == Framing::Kind::chunked || reader_.left_bytes() <= limit_bytes);
}

asio::awaitable<bool> SessionBody::skip(std::uint64_t limit_bytes) {
  wire_.set_patience(patience_);
  co_return co_await reader_.discard(limit_bytes);
}

}  // namespace chorus::http
