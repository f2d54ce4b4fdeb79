// Epochs of groups that are over: whoever still opens a run of one, having been stopped or cut off meanwhile, is told
// so at once, instead of waiting for members that will never come.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "worker/engine/failure.hpp"

namespace chorus::engine {

struct Retired {
  std::uint64_t token = 0;  // that the epoch's runs present
  std::uint32_t epoch = 0;
  Failure failure;                    // for members that the group went on with
  std::vector<std::string> left_out;  // ids of the workers it went on without: they are told epoch_fenced

  [[nodiscard]] Failure told_to(std::string const& worker) const;
};

// The latest 1024. A value of the engine.
class RetiredEpochs {
 public:
  Retired const& add(Retired epoch);  // valid until the next
  [[nodiscard]] Retired const* find(std::uint64_t token, std::uint32_t epoch) const;

 private:
  static constexpr std::size_t remembered = 1024;
  std::deque<Retired> epochs_;
};

}  // namespace chorus::engine
