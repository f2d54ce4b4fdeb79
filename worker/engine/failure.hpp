// Why a run fails, as it is told to the caller and to the peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/spec.hpp"
#include "worker/engine/errc.hpp"
#include "worker/links/frame.hpp"

namespace chorus::engine {

struct Failure {
  EngineErrc code = EngineErrc::aborted;
  std::string text;  // from whoever saw it first; passed on unchanged
  std::vector<plan::Rank> culprits;
  std::string reporter;  // "rank 2 (w2)" if a peer told, empty if it was seen here

  // The sentence for the caller of this rank.
  [[nodiscard]] std::string detail() const { return reporter.empty() ? text : reporter + " reports: " + text; }
};

[[nodiscard]] links::Verdict to_verdict(Failure const& failure, std::uint64_t token);
[[nodiscard]] Failure from_verdict(links::Verdict const& verdict, std::string reporter);

// The engine's code for why a link ended: its own, protocol_error for a bad frame, corrupt_frame for a changed one,
// otherwise peer_lost.
[[nodiscard]] EngineErrc code_of(Error const& why);

}  // namespace chorus::engine
