// The system calls of simulated services: clock, waiting and sockets. While a Machine exists the calls go to it,
// otherwise to the system. Sockets on 127.0.0.1 become local sockets: TCP on loopback delivers when the kernel finds
// time, local sockets at once, and only so a seed replays.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/simulation/machine.hpp"

using chorus::simulation::Machine;

namespace {

// Start of the wall clock: an arbitrary Sunday.
constexpr time_t wall_clock_s = 1'800'000'000;

std::uint16_t port_in(sockaddr const* address) {
  sockaddr_in internet;
  std::memcpy(&internet, address, sizeof internet);
  return ntohs(internet.sin_port);
}

void tell_address(std::uint16_t port, sockaddr* address, socklen_t* length) {
  if (address == nullptr || length == nullptr) return;
  sockaddr_in internet{};
  internet.sin_family = AF_INET;
  internet.sin_port = htons(port);
  internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(address, &internet, std::min<std::size_t>(*length, sizeof internet));
  *length = sizeof internet;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  auto const* const machine = Machine::present();
  if (machine == nullptr) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  auto const since = machine->now().time_since_epoch();
  auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  time->tv_sec = seconds.count() + (clock == CLOCK_REALTIME ? wall_clock_s : 0);
  time->tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count();
  return 0;
}

// Refused, so that Asio uses the timeout of epoll_wait for its timers.
int timerfd_create(int clock, int flags) {
  if (Machine::present() == nullptr) return static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
  errno = ENOSYS;
  return -1;
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  auto* const machine = Machine::present();
  auto const wait_ms = machine == nullptr ? timeout_ms : 0;
  auto const count = static_cast<int>(::syscall(SYS_epoll_pwait, epoll, events, most, wait_ms, nullptr, 0));
  if (count == 0 && timeout_ms != 0 && machine != nullptr) machine->idle(timeout_ms);
  return count;
}

int socket(int family, int type, int protocol) {
  auto* const machine = Machine::present();
  if (machine == nullptr || family != AF_INET || (type & SOCK_STREAM) == 0)
    return static_cast<int>(::syscall(SYS_socket, family, type, protocol));
  auto const made = static_cast<int>(::syscall(SYS_socket, AF_UNIX, type, 0));
  if (made >= 0) machine->made(made);
  return made;
}

int close(int file) {
  auto* const machine = Machine::present();
  if (machine != nullptr) machine->closed(file);
  return static_cast<int>(::syscall(SYS_close, file));
}

int bind(int socket, sockaddr const* address, socklen_t length) {
  auto* const machine = Machine::present();
  if (machine == nullptr || address->sa_family != AF_INET)
    return static_cast<int>(::syscall(SYS_bind, socket, address, length));
  return machine->bind(socket, port_in(address));
}

int connect(int socket, sockaddr const* address, socklen_t length) {
  auto* const machine = Machine::present();
  if (machine == nullptr || address->sa_family != AF_INET)
    return static_cast<int>(::syscall(SYS_connect, socket, address, length));
  return machine->connect(socket, port_in(address));
}

int accept(int socket, sockaddr* address, socklen_t* length) {
  auto* const machine = Machine::present();
  if (machine == nullptr || !machine->is_ours(socket))
    return static_cast<int>(::syscall(SYS_accept4, socket, address, length, 0));
  auto const accepted = machine->accept(socket);
  if (accepted >= 0) tell_address(machine->port_of(accepted), address, length);
  return accepted;
}

int getsockname(int socket, sockaddr* address, socklen_t* length) noexcept {
  auto const* const machine = Machine::present();
  if (machine == nullptr || !machine->is_ours(socket))
    return static_cast<int>(::syscall(SYS_getsockname, socket, address, length));
  tell_address(machine->port_of(socket), address, length);
  return 0;
}

int getpeername(int socket, sockaddr* address, socklen_t* length) noexcept {
  auto const* const machine = Machine::present();
  if (machine == nullptr || !machine->is_ours(socket))
    return static_cast<int>(::syscall(SYS_getpeername, socket, address, length));
  tell_address(1, address, length);
  return 0;
}

int setsockopt(int socket, int level, int option, void const* value, socklen_t length) noexcept {
  auto const* const machine = Machine::present();
  if (machine != nullptr && machine->is_ours(socket) && level == IPPROTO_TCP) return 0;
  return static_cast<int>(::syscall(SYS_setsockopt, socket, level, option, value, length));
}
}
