// The body of a request, read by its handler from the session's wire.
#pragma once

#include "http/message/message.hpp"
#include "http/server/session_reception.hpp"
#include "http/wire/body_reader.hpp"

namespace chorus::http {

class SessionBody final : public Body, public ReceptionSource {
 public:
  // The references outlive the body. `only_waits`: becomes true at only_wait(). If `crc32c` is given and does not fit
  // the body, the read of its end reports digest_mismatch.
  SessionBody(Wire& wire, Receptions& receptions, bool& only_waits, Framing framing, bool expects_continue,
              Patience patience, std::optional<std::uint32_t> crc32c = std::nullopt);

  [[nodiscard]] std::optional<std::uint64_t> length() const override;
  boost::asio::awaitable<Checked<std::size_t>> read_exactly(std::span<std::byte> destination) override;
  boost::asio::awaitable<std::optional<Problem>> expect_end() override;
  boost::asio::awaitable<Checked<std::string>> read_all(std::size_t limit_bytes) override;

  [[nodiscard]] std::shared_ptr<Reception> reception() override;
  void only_wait() override { only_waits_ = true; }

  // The session starts to send the answer.
  void answering() {
    if (reception_) reception_->answering();
  }
  [[nodiscard]] bool finished() const { return reader_.finished(); }
  // True if the bytes that the handler did not read can be discarded, so that the wire is at the next request.
  [[nodiscard]] bool can_be_skipped(std::uint64_t limit_bytes) const;
  boost::asio::awaitable<bool> skip(std::uint64_t limit_bytes);

 private:
  boost::asio::awaitable<std::optional<Problem>> begin();
  Problem failed(std::error_code error);
  void took(std::span<std::byte const> bytes);
  [[nodiscard]] bool was_changed() const { return crc_expected_ && finished() && crc_ != *crc_expected_; }
  [[nodiscard]] static Problem changed();

  Wire& wire_;
  Receptions& receptions_;
  bool& only_waits_;
  BodyReader reader_;
  Patience patience_;
  std::uint64_t read_bytes_ = 0;
  std::optional<std::uint32_t> const crc_expected_;
  std::uint32_t crc_ = 0;  // of the bytes read, if a CRC32C is expected
  bool begun_ = false;
  bool continue_expected_;  // the client waits for "100 Continue" before it sends the body
  bool broken_ = false;
  std::shared_ptr<SessionReception> reception_;
};

}  // namespace chorus::http
