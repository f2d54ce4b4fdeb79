// Hosts on a virtual clock and a virtual network: services run on them unchanged, on one thread, and one seed
// determines all events.
//
// Each host is a process with an io_context. A host runs when something has arrived for it, until it has nothing to do.
// Time stands still while hosts run, and then jumps to the next event. system_calls.cpp connects the services to the
// machine: a program that links it has its own clock_gettime, epoll_wait and socket calls.
//
// A connection is two local sockets with the machine in between. The machine reads what one host has sent, and writes
// it to the other host some time later, in order, as TCP does. A loss, which TCP repairs by retransmission, shows as a
// delay. A partition holds all data back until it is healed.
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

// A process. The test makes and destroys its services, inside run_as().
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
  TimePoint wake_ = TimePoint::max();  // time of the host's next timer
};

// The clock and the network of all hosts. At most one exists at a time. The hosts outlive it.
class Machine {
 public:
  explicit Machine(std::uint64_t seed);
  ~Machine();
  Machine(Machine const&) = delete;
  Machine& operator=(Machine const&) = delete;

  void add(Host& host) { hosts_.push_back(&host); }
  // Ends all connections and ports of the host. The host may still run, until its services have ended.
  void sever(Host& host);
  // Stops the host like a stopped process: it does nothing, and connections to it stay open.
  void stop(Host& host) { host.is_stopped_ = true; }
  void go_on(Host& host) {
    host.is_stopped_ = false;
    host.has_news_ = true;
  }
  // Holds all data between the two hosts back; with one_sided, only data from `from` to `to`.
  void part(Host& from, Host& to, bool one_sided);
  void heal() { parted_.clear(); }
  void cut_connections(Host& a, Host& b);
  // Delays every following piece by a time between these two.
  void delay(Duration least, Duration most);

  void at(TimePoint when, std::function<void()> what) { plans_.emplace(when, std::move(what)); }
  // Runs the hosts and the clock until `done` returns true, or until `end`.
  void run(TimePoint end, std::function<bool()> const& done);
  // Runs code of the host that does not run in its io_context, such as making its services.
  void run_as(Host& host, std::function<void()> const& what);
  // Marks the host as having work, after another thread or host has posted to it.
  void wake(Host& host) { host.has_news_ = true; }

  [[nodiscard]] TimePoint now() const { return now_; }

  // System calls of the hosts, for system_calls.cpp. Results and errno as in the system.
  int bind(int socket, std::uint16_t port);
  int connect(int socket, std::uint16_t port);
  int accept(int socket);
  [[nodiscard]] std::uint16_t port_of(int socket) const;
  [[nodiscard]] bool is_ours(int socket) const { return sockets_.contains(socket); }
  void made(int socket) { sockets_[socket] = {current_, 0}; }
  void closed(int socket);
  // Called when the running host has nothing to do for this time; -1: without limit.
  void idle(int timeout_ms);

  // Returns the machine that exists, or null.
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
  // One direction of a connection.
  struct Way {
    Host* from = nullptr;
    Host* to = nullptr;
    std::deque<Piece> pieces;
    bool is_ended = false;  // nothing more is read from `from`
  };
  struct Connection {
    Way there, back;
    int near = -1, far = -1;  // the machine's sockets: to the host that connects, and to the other host
    std::uint16_t port = 0;
    bool is_established = false;  // the far socket exists
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
  std::string const prefix_;  // of the names of local sockets
  int meeting_point_ = -1;    // the machine's listening socket for hosts that connect
};

}  // namespace chorus::simulation
