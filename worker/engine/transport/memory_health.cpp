#include "worker/engine/transport/memory_health.hpp"

#include "worker/memory/arena.hpp"

namespace chorus::engine {

bool MemoryHealth::is_unsound() const { return options_.arena != nullptr && options_.arena->mapping().is_broken(); }

std::optional<Failure> MemoryHealth::failure() const {
  if (!is_unsound()) return std::nullopt;
  return Failure{EngineErrc::aborted, "the shared memory of " + options_.worker + " was truncated", {}, {}};
}

}  // namespace chorus::engine
