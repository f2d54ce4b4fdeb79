#include "collectives/model/constants.hpp"

#include <algorithm>

namespace chorus::model {
namespace {

constexpr auto host = static_cast<std::size_t>(Level::host);

constexpr double gbit_per_s(double gbit) { return 8e-9 / gbit; }  // seconds per byte
constexpr double gbyte_per_s(double gbyte) { return 1e-9 / gbyte; }

// A network card is as fast as a link to the next host by default.
double card_s_per_byte(Constants const& constants) { return constants.link(Level::rack).beta_s_per_byte; }

}  // namespace

// The host level is the cost of one message between two processes over loopback TCP on a current server core, with both
// system calls and the wake-up. For the outer levels the bandwidths are those of the usual network cards and of one TCP
// flow across regions; the latencies are half of usual round trips: about 50 us under one switch, 200 us across a data
// hall, 1 ms between the zones of a region, 60 ms between regions. Gamma is one core adding two streams from memory, or
// from its second-level cache, which holds what a vector of half its size needs: arrived data and the sum. Codes are
// encoded and decoded in memory and added in caches, by one core with vector instructions, in bytes of f32. A message
// keeps a core busy for a system call and the way through the engine, a byte for one copy to or from the kernel. Waking
// a thread is a futex or epoll wake-up, a context switch and the lost cache contents.
Constants Constants::defaults() {
  Constants constants;
  constants.level = {{
      {15e-6, gbyte_per_s(4)},   // host
      {25e-6, gbit_per_s(25)},   // rack
      {100e-6, gbit_per_s(10)},  // zone
      {500e-6, gbit_per_s(10)},  // region
      {30e-3, gbit_per_s(1)},    // world
  }};
  constants.gamma_s_per_byte = gbyte_per_s(8);
  constants.cache_bytes = 1 << 20;
  constants.cached_gamma_s_per_byte = gbyte_per_s(50);
  constants.codec = {{
      {gbyte_per_s(8), gbyte_per_s(10), gbyte_per_s(30)},  // bf16
      {gbyte_per_s(8), gbyte_per_s(10), gbyte_per_s(30)},  // f16
      {gbyte_per_s(8), gbyte_per_s(10), gbyte_per_s(15)},  // int8
      {gbyte_per_s(7), gbyte_per_s(9), gbyte_per_s(7)},    // fp8_e4m3
  }};
  constants.uplink_s_per_byte[host] = card_s_per_byte(constants);
  constants.host_cores = 8;
  constants.message_cpu_s = 4e-6;
  constants.byte_cpu_s = gbyte_per_s(8);
  constants.wake_s = 10e-6;
  return constants;
}

// The results of `chorus-bench --calibrate --link shm` on a current server core: a message moves two cache lines to
// another core, and a byte is read from the other core's cache.
Constants Constants::shared_memory() {
  auto constants = defaults();
  constants.level[host] = {0.2e-6, gbyte_per_s(45)};
  constants.message_cpu_s = 0.05e-6;
  constants.byte_cpu_s = gbyte_per_s(200);
  constants.wake_s = 1e-6;
  constants.cache_bytes = 0;  // operands are read in place, and beta is the speed of that
  return constants;
}

Constants overridden(Constants constants, topology::ShapeSpec const& shape) {
  for (std::size_t level = 0; level < all_levels.size(); ++level)
    if (auto const& link = shape.links[level])
      constants.level[level] = {link->latency_s, gbyte_per_s(link->bandwidth_gbyte_per_s)};
  constants.uplink_s_per_byte[host] = card_s_per_byte(constants);
  for (std::size_t level = 0; level < uplink_levels; ++level)
    if (auto const& uplink = shape.uplink_gbyte_per_s[level]) constants.uplink_s_per_byte[level] = gbyte_per_s(*uplink);
  return constants;
}

}  // namespace chorus::model
