#include "library/arguments.hpp"
#include "library/border.hpp"

using namespace chorus::library;

chorus_status_t chorus_start_coordinator(chorus_coordinator_options_t const* options, int64_t timeout_ms,
                                         chorus_coordinator_t** coordinator, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (coordinator == nullptr) return bad_argument(error, "coordinator is NULL: there is nowhere to put the new one");
    *coordinator = nullptr;
    auto const how = to_options(options);
    if (how.has_error()) return tell(error, how.error());
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    auto started = chorus::LocalCoordinator::start(*how, *deadline);
    if (started.has_error()) return tell(error, started.error());
    *coordinator = new chorus_coordinator{std::move(*started)};
    return CHORUS_OK;
  });
}

char const* chorus_coordinator_url(chorus_coordinator_t const* coordinator) {
  return coordinator != nullptr ? coordinator->coordinator.url().c_str() : "";
}

void chorus_coordinator_free(chorus_coordinator_t* coordinator) { delete coordinator; }
