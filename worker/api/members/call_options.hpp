// Checks of options that all calls of a member have.
#pragma once

#include <algorithm>
#include <chrono>

#include "collectives/core/error_feedback.hpp"
#include "collectives/core/result.hpp"
#include "worker/api/errc.hpp"
#include "worker/api/joined_group.hpp"

namespace chorus::embedded {

// More is never meant, and would not fit into a point of time.
[[nodiscard]] inline std::chrono::milliseconds limited(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24 * 365));
}

// Errors: WorkerErrc::bad_argument.
[[nodiscard]] inline Status check_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) return ok();
  return Error(WorkerErrc::bad_argument, "a timeout of " + std::to_string(timeout.count()) + " ms");
}
[[nodiscard]] inline Status check_feedback(CollectiveOptions const& options, bool is_list) {
  if (options.error_feedback.empty()) return ok();
  if (auto const able = check_error_feedback(options.compression, is_list); !able)
    return Error(WorkerErrc::bad_argument, "error_feedback '" + options.error_feedback + "' " + able.error().detail);
  return ok();
}

}  // namespace chorus::embedded
