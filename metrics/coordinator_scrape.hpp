// What a coordinator does not count but is asked for when somebody scrapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metrics/service_state.hpp"

namespace chorus::metrics {

struct JournalScrape {
  std::uint64_t writes = 0, errors = 0, unwritten_rows = 0, bytes = 0;
  bool was_unclean = false;  // the last life
};

struct CoordinatorScrape {
  ServiceState state;
  // By the name of the operation; what is not named is 0.
  std::map<std::string, std::size_t, std::less<>> active, queued;
  struct Group {
    std::string name;
    std::uint32_t epoch = 0;
    std::size_t expected = 0, ready = 0;
  };
  std::vector<Group> groups;
  struct Heartbeat {
    std::string worker;
    double wall_seconds = 0;  // since 1970
  };
  std::vector<Heartbeat> heartbeats;
  double lease_seconds = 0;
  std::optional<JournalScrape> journal;  // where there is one
  std::uint64_t events_published = 0;
  std::uint64_t event_streams_dropped = 0;
  std::size_t event_streams = 0;
  std::optional<double> checkpoint_interval_seconds;
};

}  // namespace chorus::metrics
