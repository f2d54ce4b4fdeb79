// Two links on one connection, for messages either way.
//
// A link carries messages one way, and words about them the other. What is acknowledged then goes in packets of its
// own: where both sides send small messages, they cost as much as the messages. On a shared connection acknowledgements
// travel with the messages of the other direction.
#pragma once

#include <memory>
#include <string_view>

#include "worker/links/link.hpp"

namespace chorus::links {

struct TwoWay {
  std::shared_ptr<Link> there;  // messages of whoever has dialed
  std::shared_ptr<Link> back;   // of the other: its frames carry back_flag
};

// Of a link that was not started, at both of its ends. It begins to move when both parts are started. If one part
// ends, so does the other: with the reason for which this end has closed the one (LinkErrc::broken without one), or
// with that of the connection. As of any link: one thread.
[[nodiscard]] TwoWay two_way(std::shared_ptr<Link> whole);

// Of the two connections that a pair of workers may have, the one for the small messages of both: that of this dialer?
[[nodiscard]] constexpr bool is_for_small(std::string_view dialer, std::string_view acceptor) {
  return dialer < acceptor;
}

}  // namespace chorus::links
