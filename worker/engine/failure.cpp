#include "worker/engine/failure.hpp"

#include "worker/links/errc.hpp"

namespace chorus::engine {

// The wire's numbers are the enumeration's: one table less to keep.
static_assert(static_cast<int>(links::VerdictCode::peer_lost) == static_cast<int>(EngineErrc::peer_lost));
static_assert(static_cast<int>(links::VerdictCode::deadline_exceeded) ==
              static_cast<int>(EngineErrc::deadline_exceeded));
static_assert(static_cast<int>(links::VerdictCode::aborted) == static_cast<int>(EngineErrc::aborted));
static_assert(static_cast<int>(links::VerdictCode::plan_mismatch) == static_cast<int>(EngineErrc::plan_mismatch));
static_assert(static_cast<int>(links::VerdictCode::forbidden) == static_cast<int>(EngineErrc::forbidden));
static_assert(static_cast<int>(links::VerdictCode::epoch_fenced) == static_cast<int>(EngineErrc::epoch_fenced));
static_assert(static_cast<int>(links::VerdictCode::protocol_error) == static_cast<int>(EngineErrc::protocol_error));
static_assert(static_cast<int>(links::VerdictCode::corrupt_frame) == static_cast<int>(EngineErrc::corrupt_frame));
static_assert(static_cast<int>(links::VerdictCode::device_failed) == static_cast<int>(EngineErrc::device_failed));

links::Verdict to_verdict(Failure const& failure, std::uint64_t token) {
  return {token, static_cast<links::VerdictCode>(failure.code), failure.culprits, failure.text};
}

Failure from_verdict(links::Verdict const& verdict, std::string reporter) {
  return {static_cast<EngineErrc>(verdict.code), verdict.text, verdict.culprits, std::move(reporter)};
}

EngineErrc code_of(Error const& why) {
  if (why.code.category() == engine_category()) return static_cast<EngineErrc>(why.code.value());
  if (why.code == links::LinkErrc::bad_frame) return EngineErrc::protocol_error;
  if (why.code == links::LinkErrc::corrupt_frame) return EngineErrc::corrupt_frame;
  return EngineErrc::peer_lost;
}

}  // namespace chorus::engine
