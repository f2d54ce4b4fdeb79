// Retired epochs of groups. A worker that was stopped or cut off may still open a run of one: it is told at once,
// instead of waiting for members that will never come.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "worker/engine/failure/failure.hpp"

namespace chorus::engine {

struct Retired {
  std::uint64_t token = 0;  // which the runs of the epoch present
  std::uint32_t epoch = 0;
  Failure failure;                    // for members that stay in the group
  std::vector<std::string> left_out;  // ids of the workers that the group has lost: they are told epoch_fenced

  [[nodiscard]] Failure told_to(std::string const& worker) const;
};

// Keeps the latest 1024. Owned by the engine.
class RetiredEpochs {
 public:
  Retired const& add(Retired epoch);  // valid until the next add()
  [[nodiscard]] Retired const* find(std::uint64_t token, std::uint32_t epoch) const;

 private:
  static constexpr std::size_t remembered = 1024;
  std::deque<Retired> epochs_;
};

}  // namespace chorus::engine
