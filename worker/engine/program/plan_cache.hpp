// A bounded cache of built programs, least recently used out first. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "collectives/plan/program.hpp"

namespace chorus::engine {

class PlanCache {
 public:
  explicit PlanCache(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  PlanCache(PlanCache const&) = delete;
  PlanCache& operator=(PlanCache const&) = delete;

  // Builds on a miss, outside the lock: a large program holds nobody up, and two threads that miss at once may both
  // build, but share the first one's. A program larger than the limit is returned and not kept. Programs live on as
  // long as someone holds them, also after they left the cache. Errors are those of build(), and are not kept.
  [[nodiscard]] Result<std::shared_ptr<plan::Program const>> get(plan::Algorithm const& algorithm,
                                                                 plan::Spec const& spec, plan::Rank rank);

  // Program::memory_bytes() of all that is kept; never more than the limit.
  [[nodiscard]] std::size_t size_bytes() const;

 private:
  using Key = std::pair<plan::Spec, plan::Rank>;
  struct Entry {
    std::shared_ptr<plan::Program const> program;
    std::list<Key>::iterator position;
  };
  std::size_t const limit_bytes_;
  mutable std::mutex mutex_;
  std::size_t size_bytes_ = 0;
  std::list<Key> recent_;  // most recent first
  std::map<Key, Entry> entries_;
};

}  // namespace chorus::engine
