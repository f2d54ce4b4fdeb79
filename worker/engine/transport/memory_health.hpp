// Whether the memory that a worker shares with others still has its pages: somebody may have truncated it.
#pragma once

#include <optional>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/transport/data_plane_options.hpp"

namespace chorus::engine {

// The options outlive the object. Any thread.
class MemoryHealth {
 public:
  explicit MemoryHealth(DataPlaneOptions const& options) : options_(options) {}

  [[nodiscard]] bool is_unsound() const;
  // Set if it is unsound. Results computed from such memory are neither returned nor sent.
  [[nodiscard]] std::optional<Failure> failure() const;

 private:
  DataPlaneOptions const& options_;
};

}  // namespace chorus::engine
