// What every connection of Chorus asks of its socket.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace chorus::http {

// Both ends are on this machine: packets never leave it.
[[nodiscard]] bool is_within_one_host(boost::asio::ip::address const& local, boost::asio::ip::address const& remote);

// For a connected socket: short messages leave at once, and within one host nothing is paced. Congestion control that
// paces (BBR, which many machines have as their default) holds packets back by timers to the rate that it believes the
// path to have; where the path is a copy in memory, all_reduce of 1 to 64 MiB took 1.2 to 1.7 times as long with it
// (docs/performance.md). Between hosts the system's choice stands. A socket that refuses an option goes on without it.
void prepare(boost::asio::ip::tcp::socket& socket);

}  // namespace chorus::http
