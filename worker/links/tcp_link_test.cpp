#include "worker/links/tcp_link.hpp"

#include <doctest/doctest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>

using namespace chorus::links;
using boost::asio::ip::tcp;

TEST_CASE("a link that nobody wants any more when it is there is closed without having been started") {
  boost::asio::io_context io{1};
  tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  tcp::socket here(io);
  here.connect(acceptor.local_endpoint());
  auto there = acceptor.accept();
  auto const link = std::make_shared<TcpLink>(chorus::http::Connection(std::move(here), nullptr, ""), Framing::plain);
  CHECK_FALSE(link->poll());
  link->close();
  CHECK(link->is_gone());
  char byte = 0;
  boost::system::error_code error;
  CHECK(there.read_some(boost::asio::buffer(&byte, 1), error) == 0);
  CHECK(error == boost::asio::error::eof);
}
