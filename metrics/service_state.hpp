// What is not counted but read of either service when somebody scrapes.
#pragma once

#include <cstddef>

namespace chorus::metrics {

struct ServiceState {
  bool ready = false;
  bool draining = false;
  std::size_t http_connections = 0;
  std::size_t http_in_flight = 0;
};

}  // namespace chorus::metrics
