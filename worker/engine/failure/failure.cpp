#include "worker/engine/failure/failure.hpp"

#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

// Failure notices use the numbers of EngineErrc, so that no table is needed.
static_assert(static_cast<int>(links::FailureNoticeCode::peer_lost) == static_cast<int>(EngineErrc::peer_lost));
static_assert(static_cast<int>(links::FailureNoticeCode::deadline_exceeded) ==
              static_cast<int>(EngineErrc::deadline_exceeded));
static_assert(static_cast<int>(links::FailureNoticeCode::aborted) == static_cast<int>(EngineErrc::aborted));
static_assert(static_cast<int>(links::FailureNoticeCode::plan_mismatch) == static_cast<int>(EngineErrc::plan_mismatch));
static_assert(static_cast<int>(links::FailureNoticeCode::forbidden) == static_cast<int>(EngineErrc::forbidden));
static_assert(static_cast<int>(links::FailureNoticeCode::epoch_fenced) == static_cast<int>(EngineErrc::epoch_fenced));
static_assert(static_cast<int>(links::FailureNoticeCode::protocol_error) ==
              static_cast<int>(EngineErrc::protocol_error));
static_assert(static_cast<int>(links::FailureNoticeCode::corrupt_frame) == static_cast<int>(EngineErrc::corrupt_frame));
static_assert(static_cast<int>(links::FailureNoticeCode::device_failed) == static_cast<int>(EngineErrc::device_failed));

links::FailureNotice to_failure_notice(Failure const& failure, std::uint64_t token) {
  return {token, static_cast<links::FailureNoticeCode>(failure.code), failure.culprits, failure.text};
}

Failure from_failure_notice(links::FailureNotice const& failure_notice, std::string reporter) {
  return {static_cast<EngineErrc>(failure_notice.code), failure_notice.text, failure_notice.culprits,
          std::move(reporter)};
}

EngineErrc code_of(Error const& why) {
  if (why.code.category() == engine_category()) return static_cast<EngineErrc>(why.code.value());
  if (why.code == links::LinkErrc::bad_frame) return EngineErrc::protocol_error;
  if (why.code == links::LinkErrc::corrupt_frame) return EngineErrc::corrupt_frame;
  return EngineErrc::peer_lost;
}

}  // namespace chorus::engine
