#include "server/coordinator/high_availability/etcd_traffic.hpp"

#include <algorithm>

namespace chorus::coordinator {

EtcdTraffic::EtcdTraffic(std::vector<std::string> endpoints)
    : urls_(std::move(endpoints)), counts_(std::make_unique<Counts[]>(urls_.size())) {}

std::size_t EtcdTraffic::first_of(std::size_t endpoint) const {
  return static_cast<std::size_t>(std::ranges::find(urls_, urls_[endpoint]) - urls_.begin());
}

void EtcdTraffic::count(std::size_t endpoint, Outcome outcome) {
  counts_[first_of(endpoint)][static_cast<std::size_t>(outcome)].fetch_add(1, std::memory_order_relaxed);
}

std::vector<metrics::LeadershipScrape::Endpoint> EtcdTraffic::endpoints() const {
  std::vector<metrics::LeadershipScrape::Endpoint> endpoints;
  for (std::size_t i = 0; i < urls_.size(); ++i) {
    if (first_of(i) != i) continue;
    auto const count_of = [&counts = counts_[i]](Outcome outcome) {
      return counts[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
    };
    endpoints.push_back({urls_[i], count_of(Outcome::answered), count_of(Outcome::unreachable),
                         count_of(Outcome::refused), count_of(Outcome::malformed)});
  }
  return endpoints;
}

}  // namespace chorus::coordinator
