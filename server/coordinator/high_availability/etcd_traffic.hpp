// Counters of the requests to each endpoint of etcd, by outcome.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "metrics/state/leadership_scrape.hpp"

namespace chorus::coordinator {

// Shared by the clients of one process. Thread-safe.
class EtcdTraffic {
 public:
  enum class Outcome : std::uint8_t { answered, unreachable, refused, malformed };

  explicit EtcdTraffic(std::vector<std::string> endpoints);

  // `endpoint`: position in the list. A URL that appears twice in the list counts as one endpoint.
  void count(std::size_t endpoint, Outcome outcome);

  [[nodiscard]] std::vector<metrics::LeadershipScrape::Endpoint> endpoints() const;

 private:
  [[nodiscard]] std::size_t first_of(std::size_t endpoint) const;
  using Counts = std::array<std::atomic<std::uint64_t>, 4>;  // by outcome

  std::vector<std::string> const urls_;
  std::unique_ptr<Counts[]> const counts_;
};

}  // namespace chorus::coordinator
