#include "collectives/model/cost.hpp"

namespace chorus::model {
namespace {

constexpr double gbit_per_s(double gbit) { return 8e-9 / gbit; }  // seconds per byte
constexpr double gbyte_per_s(double gbyte) { return 1e-9 / gbyte; }

}  // namespace

// The host level is what one message between two processes costs over loopback TCP on a current server core, both
// system calls and the wake-up included. Outwards the bandwidths are those of the usual network cards and of one TCP
// flow across regions; the latencies are half of usual round trips: about 50 us under one switch, 200 us across a data
// hall, 1 ms between the zones of a region, 60 ms between regions. Gamma is one core adding two streams from memory.
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
  return constants;
}

}  // namespace chorus::model
