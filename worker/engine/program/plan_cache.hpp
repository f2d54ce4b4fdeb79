// A bounded cache of built programs, which evicts the least recently used one. Thread-safe.
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

  // Returns the program for this spec and rank; builds it on a miss, outside the lock. Two threads that miss at once
  // may both build, but share the program of the first. A program larger than the limit is returned without being kept.
  // An evicted program lives on as long as a caller holds it. Fails as build() does; failures are not kept.
  [[nodiscard]] Result<std::shared_ptr<plan::Program const>> get(plan::Algorithm const& algorithm,
                                                                 plan::Spec const& spec, plan::Rank rank);

  // Sum of Program::memory_bytes() of all kept programs; never more than the limit.
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
  std::list<Key> recent_;  // most recently used first
  std::map<Key, Entry> entries_;
};

}  // namespace chorus::engine
