// Host names to addresses, with a deadline that holds.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/message.hpp"

namespace chorus::http {

// Numeric addresses cost nothing. For a name the system's resolver is asked on Asio's own thread; that call cannot be
// interrupted, so at the deadline it is left to end by itself and its answer is dropped.
// Errors: connect_failed, timed_out; the detail is the reason only.
boost::asio::awaitable<Result<std::vector<boost::asio::ip::tcp::endpoint>>> resolve(std::string host,
                                                                                    std::uint16_t port,
                                                                                    TimePoint deadline);

}  // namespace chorus::http
