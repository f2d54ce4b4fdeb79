// What can be wrong beside a call itself (EngineErrc) and what was asked for (PlanErrc).
#pragma once

#include <system_error>

namespace chorus {

enum class WorkerErrc {
  bad_argument = 1,  // an option, a name or a buffer that cannot be; nothing was sent
  no_coordinator,    // none was named, or it could not be reached until the deadline
  fenced,            // a newer process has taken this worker's name
  not_assigned,      // until the deadline nobody made a group of that name with this worker in it
  no_new_epoch,      // until the deadline there was only an epoch that has failed, or has lost a member
  stopped,           // the worker was destroyed
  cancelled,         // a receive was cancelled, and has taken no message
  not_cancellable,   // a call that has ended, or that another member may wait for; it goes on
};

[[nodiscard]] std::error_category const& worker_category();
[[nodiscard]] inline std::error_code make_error_code(WorkerErrc e) { return {static_cast<int>(e), worker_category()}; }

}  // namespace chorus

template <>
struct std::is_error_code_enum<chorus::WorkerErrc> : std::true_type {};
