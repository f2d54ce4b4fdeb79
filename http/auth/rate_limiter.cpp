#include "http/auth/rate_limiter.hpp"

#include <algorithm>
#include <cmath>

namespace chorus::http {

double RateLimiter::tokens_of(Bucket const& bucket, TimePoint now) const {
  auto const seconds = std::chrono::duration<double>(now - bucket.filled).count();
  return std::min(burst_, bucket.tokens + seconds * per_second_);
}

RateLimiter::Bucket& RateLimiter::bucket_of(std::string const& address, TimePoint now) {
  if (auto const found = buckets_.find(address); found != buckets_.end()) return found->second;
  // Addresses with a full bucket are forgotten without loss.
  if (buckets_.size() >= addresses_max && now >= next_sweep_) {
    next_sweep_ = now + std::chrono::seconds(1);
    std::erase_if(buckets_, [&](auto const& entry) { return tokens_of(entry.second, now) >= burst_; });
  }
  auto const& name = buckets_.size() < addresses_max ? address : std::string();
  return buckets_.try_emplace(name, Bucket{burst_, now}).first->second;
}

std::optional<std::uint32_t> RateLimiter::take(std::string const& address, TimePoint now) {
  auto& bucket = bucket_of(address, now);
  bucket = {tokens_of(bucket, now), now};
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(std::max(1.0, std::ceil((1 - bucket.tokens) / per_second_)));
}

}  // namespace chorus::http
