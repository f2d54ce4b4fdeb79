// Requests between workers: with checksums where nothing else would notice that the network has changed them.
#pragma once

#include <optional>
#include <string>

#include "http/client.hpp"

namespace chorus::http {

enum class MessageChecksums : std::uint8_t {
  automatic,  // unless to a loopback address, or over TLS
  on,
  off,
};

// A value. The client outlives its calls.
class PeerClient {
 public:
  PeerClient(Client& client, MessageChecksums checksums) : client_(&client), checksums_(checksums) {}

  // As Client::send(). What was changed on its way, there or back, is sent again, a few times; then malformed, or the
  // peer's digest_mismatch. An answer without a checksum comes from a peer that does not know them, and is believed.
  boost::asio::awaitable<Result<Answer>> send(Call call, TimePoint deadline);

 private:
  Client* client_;
  MessageChecksums checksums_;
};

}  // namespace chorus::http
