// What one of several coordinators says of the leader and of etcd when somebody scrapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::metrics {

struct LeadershipScrape {
  bool leads = false;
  std::optional<std::int64_t> term;  // of the leader, where one is known
  struct Endpoint {
    std::string url;
    std::uint64_t answered = 0, unreachable = 0, refused = 0, malformed = 0;  // requests
  };
  std::vector<Endpoint> endpoints;  // of etcd
};

}  // namespace chorus::metrics
