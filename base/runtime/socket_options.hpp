// Socket options of every connection of Chorus: no delay for short messages, and no pacing within one host.
//
// Congestion control that paces, such as BBR, the default of many machines, holds packets back to its estimate of the
// path's rate. That makes connections within one host slow (docs/explanation/performance.md, "Pacing"). Linux goes on
// pacing a connection that began with pacing, even if the congestion control is changed later. Therefore the option is
// set on both ends before the connection exists. Between hosts the system's choice stands. A socket that refuses an
// option is used without it.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace chorus::http {

// Returns the IPv4 address of an IPv4-mapped one (::ffff:10.0.0.7), and every other address as it is.
[[nodiscard]] boost::asio::ip::address plain(boost::asio::ip::address const& address);

// Returns true if both ends are on this machine.
[[nodiscard]] bool is_within_one_host(boost::asio::ip::address const& local, boost::asio::ip::address const& remote);

// Opens a socket before it is connected to `remote`. If that fails the socket is left closed, and connecting reports
// the error.
void prepare_to_connect(boost::asio::ip::tcp::socket& socket, boost::asio::ip::tcp::endpoint const& remote);

// Prepares an open acceptor before it listens. Returns the congestion control that it had, for peers on other hosts.
[[nodiscard]] std::string prepare_to_accept(boost::asio::ip::tcp::acceptor& acceptor);

// Prepares an accepted socket; `usual` is the result of prepare_to_accept().
void prepare_accepted(boost::asio::ip::tcp::socket& socket, std::string const& usual);

}  // namespace chorus::http
