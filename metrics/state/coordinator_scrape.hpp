// Values that a coordinator reads at each scrape instead of counting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metrics/state/leadership_scrape.hpp"
#include "metrics/state/service_state.hpp"

namespace chorus::metrics {

struct JournalScrape {
  std::uint64_t writes = 0, errors = 0, unwritten_rows = 0, bytes = 0;
  bool was_unclean = false;  // the last process was not shut down cleanly
};

struct CoordinatorScrape {
  ServiceState state;
  // By operation; a missing operation counts 0.
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
  std::optional<JournalScrape> journal;        // empty without a journal
  std::optional<LeadershipScrape> leadership;  // of one of several coordinators
  std::uint64_t events_published = 0;
  std::uint64_t event_streams_dropped = 0;
  std::size_t event_streams = 0;
  std::optional<double> checkpoint_interval_seconds;
  std::map<std::string, std::size_t, std::less<>> parameters;  // by state; a missing state counts 0
};

}  // namespace chorus::metrics
