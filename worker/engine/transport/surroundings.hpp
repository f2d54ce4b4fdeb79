// What an engine needs from its environment: time, connections, and later calls.
#pragma once

#include <cstdint>

#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/trace/clock.hpp"

namespace chorus::engine {

// Called only from within the engine's methods and its links' callbacks.
class Surroundings : public Clock {
 public:
  // Dials the peer. Answers once, later and not from within this call, with Engine::dialed(send connection, ...).
  virtual void dial(std::uint64_t send_connection, Peer const& peer, TimePoint deadline) = 0;
  // Calls Engine::settle() soon, after links have had a chance to move, because local work is left.
  virtual void settle_soon() = 0;
  // Calls Engine::watch_receives() soon: a receive waits for its message. Threads that poll do so by themselves.
  virtual void watch_soon() = 0;
  // A run was started: Engine::next_deadline() may be earlier now.
  virtual void deadline_changed() = 0;
  // Calls Engine::poll_devices() in a moment, once for any number of requests, because GPUs are at work.
  virtual void poll_devices_soon() = 0;

 protected:
  ~Surroundings() = default;
};

}  // namespace chorus::engine
