#include "tests/support/held_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace chorus::testing {

HeldPort::HeldPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  int const yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket_, generic, size) != 0 || ::getsockname(socket_, generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "no port can be held");
  number_ = ntohs(address.sin_port);
}

HeldPort::~HeldPort() { ::close(socket_); }

}  // namespace chorus::testing
