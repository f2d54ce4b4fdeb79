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

std::string congestion_control_of(tcp::socket& socket) {
  std::array<char, 32> name{};
  socklen_t size = name.size();
  REQUIRE(::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0);
  return name.data();
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

TEST_CASE("a connection within one host is not paced, and sends short messages at once") {
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, {make_address("127.0.0.1"), 0});
  tcp::socket near(context), far(context);
  near.connect(acceptor.local_endpoint());
  acceptor.accept(far);
  for (auto* const end : {&near, &far}) {
    prepare(*end);
    CHECK(congestion_control_of(*end) == "reno");
    tcp::no_delay at_once;
    end->get_option(at_once);
    CHECK(at_once.value());
  }
}

TEST_CASE("a socket whose peer has gone is left as it is") {
  boost::asio::io_context context;
  tcp::socket closed(context);
  prepare(closed);
  CHECK_FALSE(closed.is_open());
}
