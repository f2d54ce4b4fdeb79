// The connections of a client: idle ones by authority, for reuse, and those in use, which close() ends.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collectives/core/assert.hpp"
#include "http/wire/wire.hpp"

namespace chorus::http {

class ConnectionPool {
 public:
  ConnectionPool() = default;
  ~ConnectionPool() { CHORUS_ASSERT(in_use_.empty(), "a client outlives its calls"); }
  ConnectionPool(ConnectionPool const&) = delete;
  ConnectionPool& operator=(ConnectionPool const&) = delete;

  static constexpr std::size_t idle_per_authority_max = 32;
  static constexpr std::chrono::seconds idle_max{30};  // below the server's idle_timeout

  // Returns the most recently used connection that the peer has not closed; null if there is none.
  [[nodiscard]] std::unique_ptr<Wire> take(std::string const& authority);
  // The wire is between two calls.
  void give_back(std::string const& authority, std::unique_ptr<Wire> wire);

  void close();
  [[nodiscard]] bool closed() const { return closed_; }

  // While this object lives, close() and the deadline end the wire. Pool and wire outlive it.
  class InUse {
   public:
    InUse(ConnectionPool& pool, Wire& wire, boost::asio::any_io_executor const& executor, TimePoint deadline);
    ~InUse();
    InUse(InUse const&) = delete;
    InUse& operator=(InUse const&) = delete;

   private:
    ConnectionPool& pool_;
    Wire& wire_;
    boost::asio::steady_timer timer_;
    std::shared_ptr<bool> over_;  // tells the timer's callback, which may run later, that the call has ended
  };

 private:
  struct Idle {
    std::unique_ptr<Wire> wire;
    TimePoint since;
  };
  std::unordered_map<std::string, std::vector<Idle>> idle_;
  std::unordered_set<Wire*> in_use_;
  TimePoint next_sweep_{};
  bool closed_ = false;
};

}  // namespace chorus::http
