// Values of a worker or coordinator that are read at each scrape instead of being counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace chorus::metrics {

using DiskWaits = std::map<std::string_view, double>;  // seconds, by the kind of data on the disk

struct Memory {
  std::uint64_t limit_bytes = 0;  // of the process; 0: unknown
  std::optional<std::uint64_t> used_bytes;
};

struct ServiceState {
  bool ready = false;
  bool draining = false;
  std::size_t http_connections = 0;
  std::size_t http_in_flight = 0;
  bool authenticates = false;
  std::optional<double> certificate_expiry_seconds;  // since 1970; empty without TLS
  Memory memory = {};
  DiskWaits disk_waits = {};  // age of the oldest disk call that has not returned
};

}  // namespace chorus::metrics
