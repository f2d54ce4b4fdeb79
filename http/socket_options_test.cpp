#include "http/socket_options.hpp"

#include <doctest/doctest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <string>

using namespace chorus::http;
using boost::asio::ip::make_address;
using boost::asio::ip::tcp;

namespace {

template <class Socket>
std::string congestion_control_of(Socket& socket) {
  std::array<char, 32> name{};
  socklen_t size = name.size();
  REQUIRE(::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0);
  return name.data();
}

bool sends_at_once(tcp::socket const& socket) {
  tcp::no_delay at_once;
  socket.get_option(at_once);
  return at_once.value();
}

}  // namespace

TEST_CASE("within one host are addresses of the loopback, and the machine's own") {
  CHECK(is_within_one_host(make_address("127.0.0.1"), make_address("127.0.0.1")));
  CHECK(is_within_one_host(make_address("127.0.0.1"), make_address("127.0.0.2")));
  CHECK(is_within_one_host(make_address("::1"), make_address("::1")));
  CHECK(is_within_one_host(make_address("10.0.0.7"), make_address("10.0.0.7")));
  CHECK_FALSE(is_within_one_host(make_address("10.0.0.7"), make_address("10.0.0.8")));
  CHECK_FALSE(is_within_one_host(make_address("fe80::1"), make_address("fe80::2")));
}

// Linux paces for good what has begun paced: what is asked for afterwards comes too late.
TEST_CASE("a connection within one host is not paced from its first packet on, and sends short messages at once") {
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, tcp::v4());
  auto const usual = prepare_to_accept(acceptor);
  acceptor.bind({make_address("127.0.0.1"), 0});
  acceptor.listen();
  tcp::socket near(context), far(context);
  prepare_to_connect(near, acceptor.local_endpoint());
  CHECK(congestion_control_of(near) == "reno");
  near.connect(acceptor.local_endpoint());
  acceptor.accept(far);
  CHECK(congestion_control_of(far) == "reno");
  prepare_accepted(far, usual);
  CHECK(congestion_control_of(far) == "reno");
  CHECK(sends_at_once(near));
  CHECK(sends_at_once(far));
}

TEST_CASE("what comes from elsewhere has the congestion control that the acceptor had") {
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, tcp::v4());
  auto const before = congestion_control_of(acceptor);
  CHECK(prepare_to_accept(acceptor) == before);
}

TEST_CASE("a socket that is to connect to another host keeps the system's congestion control") {
  boost::asio::io_context context;
  tcp::socket untouched(context, tcp::v4()), socket(context);
  prepare_to_connect(socket, {make_address("192.0.2.1"), 80});  // an address for documentation: nobody's
  CHECK(congestion_control_of(socket) == congestion_control_of(untouched));
  CHECK(sends_at_once(socket));
}

TEST_CASE("a socket whose peer has gone is left as it is") {
  boost::asio::io_context context;
  tcp::socket closed(context);
  prepare_accepted(closed, "reno");
  CHECK_FALSE(closed.is_open());
}
