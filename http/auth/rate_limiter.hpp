// Limits the rate of each address with a token bucket.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace chorus::http {

// Used on one thread. Remembers a bounded number of addresses; above that, new addresses share a bucket.
class RateLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::size_t addresses_max = 4096;

  RateLimiter(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  // Empty: allowed. Otherwise the number of seconds to wait, at least one.
  [[nodiscard]] std::optional<std::uint32_t> take(std::string const& address, TimePoint now);

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint filled{};
  };
  [[nodiscard]] double tokens_of(Bucket const& bucket, TimePoint now) const;
  Bucket& bucket_of(std::string const& address, TimePoint now);

  double per_second_;
  double burst_;
  std::unordered_map<std::string, Bucket> buckets_;
  TimePoint next_sweep_{};
};

}  // namespace chorus::http
