// Resolves host names to addresses, with a deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/message/message.hpp"

namespace chorus::http {

// Numeric addresses need no lookup. For a name the system's resolver is called on Asio's own thread. That call cannot
// be interrupted: after the deadline it runs to its end, and its result is dropped.
// Errors: no_way, timed_out; the detail contains only the reason.
boost::asio::awaitable<Result<std::vector<boost::asio::ip::tcp::endpoint>>> resolve(std::string host,
                                                                                    std::uint16_t port,
                                                                                    TimePoint deadline);

}  // namespace chorus::http
