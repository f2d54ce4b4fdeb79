#include "base/runtime/socket_options.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <fstream>
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

// A congestion control other than that within a host, which needs no privilege; "" if there is none.
std::string any_usual() {
  std::ifstream allowed("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  for (std::string name; allowed >> name;)
    if (name != "reno") return name;
  return "";
}

// Enters a network namespace in which "lo" has addresses that look like those of two hosts. Returns false if the system
// allows no such namespace.
bool enter_network_with(std::string const& one, std::string const& other) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWNET) != 0) return false;
  int const any = ::socket(AF_INET, SOCK_DGRAM, 0);
  auto const ask = [any](char const* interface, unsigned long what, auto const& fill) {
    ifreq request{};
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    fill(request);
    return ::ioctl(any, what, &request) == 0;
  };
  auto const address = [](std::string const& text) {
    return [text](ifreq& request) {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      ::inet_pton(AF_INET, text.c_str(), &at.sin_addr);
      std::memcpy(&request.ifr_addr, &at, sizeof at);
    };
  };
  bool const is_up = ask("lo", SIOCSIFFLAGS, [](ifreq& request) { request.ifr_flags = IFF_UP | IFF_LOOPBACK; });
  bool const has_both = ask("lo:1", SIOCSIFADDR, address(one)) && ask("lo:2", SIOCSIFADDR, address(other));
  ::close(any);
  return is_up && has_both;
}

// Returns the congestion control of the accepted end of a connection between two addresses; "" without a namespace.
std::string accepted_between(std::string const& here, std::string const& there, std::string const& usual) {
  if (!enter_network_with(here, there)) return "";
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, tcp::v4());
  static_cast<void>(prepare_to_accept(acceptor));
  acceptor.bind({make_address(here), 0});
  acceptor.listen();
  tcp::socket near(context, tcp::v4()), far(context);
  near.bind({make_address(there), 0});
  near.connect(acceptor.local_endpoint());
  acceptor.accept(far);
  prepare_accepted(far, usual);
  return congestion_control_of(far);
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

// Linux never stops pacing a connection that began with pacing: a later change of the option comes too late.
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

TEST_CASE("a connection from another host has the congestion control that the acceptor had") {
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, tcp::v4());
  auto const before = congestion_control_of(acceptor);
  CHECK(prepare_to_accept(acceptor) == before);
}

TEST_CASE("a connection from another host gets the system's congestion control when it is accepted") {
  auto const usual = any_usual();
  if (usual.empty()) {
    MESSAGE("skipped: this system allows nothing but reno");
    return;
  }
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto const found = accepted_between("10.9.0.1", "10.9.0.2", usual);
    ::_exit(::write(ends[1], found.data(), found.size()) == static_cast<ssize_t>(found.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::array<char, 32> text{};
  auto const size = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (size == 0) {
    MESSAGE("skipped: no network of one's own here (user namespaces)");
    return;
  }
  REQUIRE(size > 0);
  CHECK(std::string(text.data(), static_cast<std::size_t>(size)) == usual);
}

TEST_CASE("a socket that is to connect to another host keeps the system's congestion control") {
  boost::asio::io_context context;
  tcp::socket untouched(context, tcp::v4()), socket(context);
  prepare_to_connect(socket, {make_address("192.0.2.1"), 80});  // reserved for documentation
  CHECK(congestion_control_of(socket) == congestion_control_of(untouched));
  CHECK(sends_at_once(socket));
}

TEST_CASE("a socket whose peer has gone is left as it is") {
  boost::asio::io_context context;
  tcp::socket closed(context);
  prepare_accepted(closed, "reno");
  CHECK_FALSE(closed.is_open());
}
