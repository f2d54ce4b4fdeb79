// How a run can fail.
#pragma once

#include <system_error>

namespace chorus::engine {

enum class EngineErrc {
  peer_lost = 1,      // a link closed, or a peer could not be reached
  deadline_exceeded,  // the detail names the ranks that were waited for
  aborted,            // by the coordinator, by the user, or because the worker stops
  plan_mismatch,      // a peer runs something else under the same run number
  forbidden,          // a peer presented a wrong token
  epoch_fenced,       // the peer belongs to an older epoch or incarnation
  protocol_error,     // a peer sent an impossible frame
  corrupt_frame,      // bytes were changed between two ranks
  device_failed,      // a rank's GPU refused its work, or is lost; the detail has the driver's words
};

[[nodiscard]] std::error_category const& engine_category();
[[nodiscard]] inline std::error_code make_error_code(EngineErrc e) { return {static_cast<int>(e), engine_category()}; }

}  // namespace chorus::engine

template <>
struct std::is_error_code_enum<chorus::engine::EngineErrc> : std::true_type {};
