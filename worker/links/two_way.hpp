// Two links on one connection, for messages both ways.
//
// A link carries messages one way only, so TCP acknowledges them in packets of their own. If both sides send small
// messages, these packets cost as much as the messages. On a shared connection the acknowledgements travel with the
// messages of the other direction.
#pragma once

#include <memory>
#include <string_view>

#include "worker/links/link.hpp"

namespace chorus::links {

struct TwoWay {
  std::shared_ptr<Link> there;  // messages of the dialer
  std::shared_ptr<Link> back;   // messages of the acceptor; the frames carry back_flag
};

// Splits a link that was not started; done at both of its ends. The link starts when both parts are started. If one
// part ends, the other one ends with it: with the reason of close_for(), LinkErrc::broken for close(), or the
// connection's error. One thread.
[[nodiscard]] TwoWay two_way(std::shared_ptr<Link> whole);

// A pair of workers may have two connections, one dialed by each. Returns true if this dialer's connection carries the
// small messages of both.
[[nodiscard]] constexpr bool is_for_small(std::string_view dialer, std::string_view acceptor) {
  return dialer < acceptor;
}

}  // namespace chorus::links
