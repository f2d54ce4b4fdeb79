#include "http/socket_options.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string_view>

namespace chorus::http {
namespace {

// Every Linux has it and lets everybody take it.
constexpr std::string_view without_pacing = "reno";

}  // namespace

bool is_within_one_host(boost::asio::ip::address const& local, boost::asio::ip::address const& remote) {
  return remote.is_loopback() || local == remote;
}

void prepare(boost::asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  socket.set_option(boost::asio::ip::tcp::no_delay(true), error);
  auto const local = socket.local_endpoint(error);
  if (error) return;
  auto const remote = socket.remote_endpoint(error);
  if (error || !is_within_one_host(local.address(), remote.address())) return;
  static_cast<void>(::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, without_pacing.data(),
                                 static_cast<socklen_t>(without_pacing.size())));
}

}  // namespace chorus::http
