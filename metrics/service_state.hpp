// What is not counted but read of either service when somebody scrapes.
#pragma once

#include <cstddef>
#include <optional>

namespace chorus::metrics {

struct ServiceState {
  bool ready = false;
  bool draining = false;
  std::size_t http_connections = 0;
  std::size_t http_in_flight = 0;
  bool authenticates = false;
  std::optional<double> certificate_expiry_seconds;  // since 1970; none without TLS
};

}  // namespace chorus::metrics
