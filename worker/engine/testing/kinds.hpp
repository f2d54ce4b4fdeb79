// Starts runs as a group's callers do: a run like an earlier one is a further run of the same kind.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "worker/engine/run/run_kind.hpp"

namespace chorus::engine::testing {

// The kinds of one rank. Thread-safe.
class Kinds {
 public:
  // Returns the kind of the run that the spec describes, in host memory.
  [[nodiscard]] std::shared_ptr<RunKind> of(RunSpec const& spec) {
    std::lock_guard const lock(mutex_);
    for (auto const& kind : kinds_)
      if (are_alike(kind->spec(), spec)) return kind;
    if (kinds_.size() == kinds_max) kinds_.clear();
    auto first = spec;
    first.owner = nullptr;
    return kinds_.emplace_back(std::make_shared<RunKind>(std::move(first)));
  }
  [[nodiscard]] static RunCall call_of(RunSpec const& spec) {
    return {spec.run, spec.input, spec.output, spec.deadline};
  }

 private:
  static constexpr std::size_t kinds_max = 16;

  static bool are_alike(RunSpec const& a, RunSpec const& b) {
    if ((a.program == nullptr) != (b.program == nullptr) || a.members.size() != b.members.size()) return false;
    for (std::size_t r = 0; r < a.members.size(); ++r) {
      auto const &one = a.members[r], &other = b.members[r];
      if (one.rank != other.rank || one.worker != other.worker || one.incarnation != other.incarnation ||
          one.url != other.url)
        return false;
    }
    return a.group == b.group && a.epoch == b.epoch && a.token == b.token && a.description == b.description &&
           a.codes == b.codes && a.fingerprint == b.fingerprint && a.dtype == b.dtype && a.reduce == b.reduce &&
           a.sizes == b.sizes && a.gpu == b.gpu && a.segment_bytes == b.segment_bytes && a.window == b.window &&
           (a.program == b.program || *a.program == *b.program);
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<RunKind>> kinds_;
};

}  // namespace chorus::engine::testing
