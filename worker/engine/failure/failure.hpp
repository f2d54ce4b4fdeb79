// Why a run fails, as the caller and the peers are told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/spec.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/links/frames/frame.hpp"

namespace chorus::engine {

struct Failure {
  EngineErrc code = EngineErrc::aborted;
  std::string text;  // by the rank that saw the failure first; passed on unchanged
  std::vector<plan::Rank> culprits;
  std::string reporter;  // "rank 2 (w2)" if a peer reported the failure, empty if it was seen here

  // The sentence for the caller on this rank.
  [[nodiscard]] std::string detail() const { return reporter.empty() ? text : reporter + " reports: " + text; }
};

[[nodiscard]] links::FailureNotice to_failure_notice(Failure const& failure, std::uint64_t token);
[[nodiscard]] Failure from_failure_notice(links::FailureNotice const& failure_notice, std::string reporter);

// Maps the reason why a link ended to an engine code: engine codes stay, a bad frame is protocol_error, a changed one
// corrupt_frame, everything else peer_lost.
[[nodiscard]] EngineErrc code_of(Error const& why);

}  // namespace chorus::engine
