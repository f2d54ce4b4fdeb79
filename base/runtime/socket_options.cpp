#include "base/runtime/socket_options.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/udp.hpp>
#include <string_view>

namespace chorus::http {
namespace {

using boost::asio::ip::tcp;
using boost::asio::ip::udp;
using boost::system::error_code;

// Every Linux has it, and it needs no privilege.
constexpr std::string_view without_pacing = "reno";

void set_congestion_control(int socket, std::string_view name) {
  static_cast<void>(
      ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())));
}

// Returns an empty string if the system does not report it.
std::string congestion_control_of(int socket) {
  std::array<char, 64> name{};
  auto size = static_cast<socklen_t>(name.size() - 1);
  return ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0 ? std::string(name.data()) : "";
}

void send_at_once(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
}

// The local address for packets to `remote` equals `remote` if that is an address of this machine. Connecting a UDP
// socket asks for this address and sends nothing.
bool is_of_this_host(boost::asio::any_io_executor const& executor, tcp::endpoint const& remote) {
  if (remote.address().is_loopback()) return true;
  udp::socket probe(executor);
  error_code error;
  probe.connect({remote.address(), remote.port()}, error);
  if (error) return false;
  auto const local = probe.local_endpoint(error);
  return !error && is_within_one_host(local.address(), remote.address());
}

}  // namespace

boost::asio::ip::address plain(boost::asio::ip::address const& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

bool is_within_one_host(boost::asio::ip::address const& local, boost::asio::ip::address const& remote) {
  return plain(remote).is_loopback() || local == remote;
}

void prepare_to_connect(tcp::socket& socket, tcp::endpoint const& remote) {
  error_code error;
  socket.open(remote.protocol(), error);
  if (error) return;
  send_at_once(socket);
  if (is_of_this_host(socket.get_executor(), remote)) set_congestion_control(socket.native_handle(), without_pacing);
}

std::string prepare_to_accept(tcp::acceptor& acceptor) {
  auto usual = congestion_control_of(acceptor.native_handle());
  set_congestion_control(acceptor.native_handle(), without_pacing);
  return usual;
}

void prepare_accepted(tcp::socket& socket, std::string const& usual) {
  send_at_once(socket);
  error_code error;
  auto const local = socket.local_endpoint(error);
  if (error) return;
  auto const remote = socket.remote_endpoint(error);
  if (!error && !is_within_one_host(local.address(), remote.address()))
    set_congestion_control(socket.native_handle(), usual);
}

}  // namespace chorus::http
