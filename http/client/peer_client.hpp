// Requests between workers, with checksums where nothing else detects that the network has changed a message.
#pragma once

#include <optional>
#include <string>

#include "http/client/client.hpp"

namespace chorus::http {

enum class MessageChecksums : std::uint8_t {
  automatic,  // on, except to loopback addresses and over TLS
  on,
  off,
};

// A value. The client outlives its calls.
class PeerClient {
 public:
  PeerClient(Client& client, MessageChecksums checksums) : client_(&client), checksums_(checksums) {}

  // Like Client::send(). A message that was changed in either direction is sent again, a few times; then malformed, or
  // the peer's digest_mismatch. An answer without a checksum comes from a peer that does not know checksums, and is
  // accepted.
  boost::asio::awaitable<Result<Answer>> send(Call call, TimePoint deadline);

 private:
  Client* client_;
  MessageChecksums checksums_;
};

}  // namespace chorus::http
