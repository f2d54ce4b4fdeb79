#include "worker/engine/program/plan_cache.hpp"

namespace chorus::engine {

using plan::Algorithm, plan::Program, plan::Rank, plan::Spec;

Result<std::shared_ptr<Program const>> PlanCache::get(Algorithm const& algorithm, Spec const& spec, Rank rank) {
  auto const key = Key(spec, rank);
  auto const find = [&]() -> std::shared_ptr<Program const> {
    auto const at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, at->second.position);
    return at->second.program;
  };
  if (spec.algorithm == algorithm.name) {
    std::lock_guard const lock(mutex_);
    if (auto program = find()) return program;
  }

  auto built = plan::build(algorithm, spec, rank);
  if (built.has_error()) return built.error();
  auto const program = std::make_shared<Program const>(std::move(built).value());
  auto const program_bytes = program->memory_bytes();
  if (program_bytes > limit_bytes_) return program;

  std::lock_guard const lock(mutex_);
  if (auto other = find()) return other;  // another thread was faster; all share its program
  while (size_bytes_ + program_bytes > limit_bytes_) {
    auto const oldest = entries_.find(recent_.back());
    size_bytes_ -= oldest->second.program->memory_bytes();
    entries_.erase(oldest);
    recent_.pop_back();
  }
  recent_.push_front(key);
  entries_.emplace(key, Entry{program, recent_.begin()});
  size_bytes_ += program_bytes;
  return program;
}

std::size_t PlanCache::size_bytes() const {
  std::lock_guard const lock(mutex_);
  return size_bytes_;
}

}  // namespace chorus::engine
