// The body of a request as its handler sees it.
#pragma once

#include "http/body_reader.hpp"
#include "http/message.hpp"

namespace chorus::http {

class SessionBody final : public Body {
 public:
  // The wire outlives the body. Who reads its end hears of it if its CRC32C is not this one, if one is given:
  // digest_mismatch.
  SessionBody(Wire& wire, Framing framing, bool expects_continue, Patience patience,
              std::optional<std::uint32_t> crc32c = std::nullopt);

  [[nodiscard]] std::optional<std::uint64_t> length() const override;
  boost::asio::awaitable<Checked<std::size_t>> read_exactly(std::span<std::byte> destination) override;
  boost::asio::awaitable<Checked<std::string>> read_all(std::size_t limit_bytes) override;

  [[nodiscard]] bool finished() const { return reader_.finished(); }
  // What the handler left can be thrown away, and the wire then stands at the next request.
  [[nodiscard]] bool can_be_skipped(std::uint64_t limit_bytes) const;
  boost::asio::awaitable<bool> skip(std::uint64_t limit_bytes);

 private:
  boost::asio::awaitable<std::optional<Problem>> begin();
  Problem failed(std::error_code error);
  void took(std::span<std::byte const> bytes);
  [[nodiscard]] bool was_changed() const { return crc_expected_ && finished() && crc_ != *crc_expected_; }
  [[nodiscard]] static Problem changed();

  Wire& wire_;
  BodyReader reader_;
  Patience patience_;
  std::uint64_t read_bytes_ = 0;
  std::optional<std::uint32_t> const crc_expected_;
  std::uint32_t crc_ = 0;  // of what was read, if one is expected
  bool begun_ = false;
  bool continue_expected_;  // the client waits for it before it sends anything
  bool broken_ = false;
};

}  // namespace chorus::http
