// Hosts with a clock and a network that belong to the test: services run on them unchanged, on one thread, and
// everything that happens follows from one seed.
//
// Each host is a process: an io_context, which runs when something has come for it and until it has nothing to do. Time
// stands still while hosts run, and then goes on to the next thing that happens. system_calls.cpp puts this under the
// services: clock_gettime, epoll_wait and the calls that make sockets are replaced in a program that is linked with it.
//
// A connection is two local sockets with the machine in between, which reads what one host has sent, and writes it to
// the other one some time later: in order, as TCP does. What TCP does to what is lost, sending it again, shows as
// lateness; a partition holds everything back until it is healed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/blocking_thread.hpp"

namespace chorus::simulation {

using Duration = std::chrono::steady_clock::duration;

class Machine;

// A process. Its services are made and destroyed by the test, inside run_as().
class Host {
 public:
  explicit Host(std::string host_name) : name(std::move(host_name)) {}
  Host(Host const&) = delete;
  Host& operator=(Host const&) = delete;

  boost::asio::io_context io{1};
  std::string const name;
  std::unique_ptr<BlockingThread> blocking;  // null: none. Its sockets, stops and faults are those of the host

 private:
  friend class Machine;
  bool is_stopped_ = false;
  bool is_severed_ = false;
  bool has_news_ = true;
  TimePoint wake_ = TimePoint::max();  // its next timer
};

// One at a time. Hosts outlive it.
class Machine {
 public:
  explicit Machine(std::uint64_t seed);
  ~Machine();
  Machine(Machine const&) = delete;
  Machine& operator=(Machine const&) = delete;

  void add(Host& host) { hosts_.push_back(&host); }
  // No connection and no port of it is left; it may still be run, to its end, by itself.
  void sever(Host& host);
  // As a process that is stopped: connections to it stand, and it does nothing.
  void stop(Host& host) { host.is_stopped_ = true; }
  void go_on(Host& host) {
    host.is_stopped_ = false;
    host.has_news_ = true;
  }
  // Nothing gets from one to the other, either way or, one-sided, from `from` to `to`.
  void part(Host& from, Host& to, bool one_sided);
  void heal() { parted_.clear(); }
  void cut_connections(Host& a, Host& b);
  // Every piece takes between these times, from now on.
  void delay(Duration least, Duration most);

  void at(TimePoint when, std::function<void()> what) { plans_.emplace(when, std::move(what)); }
  // Runs the hosts, and time, until `done`, or until `end`.
  void run(TimePoint end, std::function<bool()> const& done);
  // What the host's own code is to be in, but for what it does in its io_context.
  void run_as(Host& host, std::function<void()> const& what);
  // Somebody else has given the host something to do.
  void wake(Host& host) { host.has_news_ = true; }

  [[nodiscard]] TimePoint now() const { return now_; }

  // The calls of the system, for system_calls.cpp. As the system's, with errno.
  int bind(int socket, std::uint16_t port);
  int connect(int socket, std::uint16_t port);
  int accept(int socket);
  [[nodiscard]] std::uint16_t port_of(int socket) const;
  [[nodiscard]] bool is_ours(int socket) const { return sockets_.contains(socket); }
  void made(int socket) { sockets_[socket] = {current_, 0}; }
  void closed(int socket);
  // The host that runs has nothing to do for so long; -1: for ever.
  void idle(int timeout_ms);

  // The one that exists, or null.
  [[nodiscard]] static Machine* present();

 private:
  struct Socket {
    Host* host = nullptr;
    std::uint16_t port = 0;
  };
  struct Listener {
    Host* host = nullptr;
    int socket = -1;
  };
  struct Piece {
    TimePoint due;
    std::string bytes;  // empty: the end
  };
  // One way of a connection.
  struct Way {
    Host* from = nullptr;
    Host* to = nullptr;
    std::deque<Piece> pieces;
    bool is_ended = false;  // nothing more is read
  };
  struct Connection {
    Way there, back;
    int near = -1, far = -1;  // the machine's ends: with the host that has connected, and with the other one
    std::uint16_t port = 0;
    bool is_established = false;  // the far end exists
  };

  bool run_hosts();
  void run_host(Host& host);
  void collect(Host& host);
  void read(Way& way, int from);
  bool deliver();
  bool deliver(Connection& connection, Way& way, int& to, TimePoint& next);
  bool establish(Connection& connection);
  void close(Connection& connection);
  void forget_closed();
  [[nodiscard]] bool is_parted(Host const* from, Host const* to) const { return parted_.contains({from, to}); }
  Duration latency();

  std::mt19937_64 random_;
  TimePoint now_{std::chrono::hours(1)};
  Duration least_ = std::chrono::microseconds(20), most_ = std::chrono::microseconds(200);
  std::vector<Host*> hosts_;
  Host* current_ = nullptr;
  std::multimap<TimePoint, std::function<void()>> plans_;
  std::map<int, Socket> sockets_;
  std::map<std::uint16_t, Listener> listeners_;
  std::list<Connection> connections_;
  std::set<std::pair<Host const*, Host const*>> parted_;
  std::uint16_t next_port_ = 20000;
  std::string const prefix_;  // of the names of real sockets
  int meeting_point_ = -1;    // where sockets that connect are accepted by the machine
};

}  // namespace chorus::simulation
