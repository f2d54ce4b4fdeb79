// What every connection of Chorus asks of its socket.
//
// Short messages leave at once, and within one host nothing is paced. Congestion control that paces (BBR, which many
// machines have as their default) holds packets back by timers to the rate that it believes the path to have; where the
// path is a copy in memory, all_reduce of 1 to 64 MiB took 1.2 to 1.7 times as long with it. Linux goes on pacing a
// connection that began so and was given another congestion control later, by a rate that grows with its window over
// its round trips: so both ends are asked before there is a connection (docs/performance.md, "Pacing"). Between hosts
// the system's choice stands. A socket that refuses an option goes on without it.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace chorus::http {

// Both ends are on this machine: packets never leave it.
[[nodiscard]] bool is_within_one_host(boost::asio::ip::address const& local, boost::asio::ip::address const& remote);

// Opens a socket that is to be connected to `remote` next. One that cannot be opened is left as it is: connecting
// tells.
void prepare_to_connect(boost::asio::ip::tcp::socket& socket, boost::asio::ip::tcp::endpoint const& remote);

// For an open acceptor, before it listens. The congestion control that it had, for those that come from elsewhere.
[[nodiscard]] std::string prepare_to_accept(boost::asio::ip::tcp::acceptor& acceptor);

// For a socket that has been accepted; `usual` is what prepare_to_accept() returned.
void prepare_accepted(boost::asio::ip::tcp::socket& socket, std::string const& usual);

}  // namespace chorus::http
