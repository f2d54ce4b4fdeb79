// How calls cross the border from C: errors become statuses, and no exception passes.
#pragma once

#include <exception>
#include <new>
#include <shared_mutex>
#include <string>
#include <utility>

#include "collectives/core/result.hpp"
#include "library/handles.hpp"

namespace chorus::library {

// The status of an error of any module; CHORUS_INTERNAL if the border does not know it.
[[nodiscard]] chorus_status_t to_status(std::error_code code);

// Fills in `error` unless it is null, and returns the status. A failure to copy the text leaves it out.
chorus_status_t tell(chorus_error_t* error, chorus_status_t status, std::string text,
                     std::vector<std::uint32_t> ranks = {}) noexcept;
chorus_status_t tell(chorus_error_t* error, Error const& why, std::vector<std::uint32_t> ranks = {}) noexcept;
chorus_status_t bad_argument(chorus_error_t* error, std::string text) noexcept;

// Runs `body`, which returns a status, with `error` cleared. What it throws becomes CHORUS_OUT_OF_MEMORY or
// CHORUS_INTERNAL.
template <class Body>
chorus_status_t guarded(chorus_error_t* error, Body&& body) noexcept {
  if (error != nullptr) {
    error->status = CHORUS_OK;
    error->text.clear();
    error->ranks.clear();
  }
  try {
    return std::forward<Body>(body)();
  } catch (std::bad_alloc const&) { return tell(error, CHORUS_OUT_OF_MEMORY, {}); } catch (std::exception const& e) {
    return tell(error, CHORUS_INTERNAL, e.what());
  } catch (...) { return tell(error, CHORUS_INTERNAL, "an exception of an unknown type"); }
}

// Runs `body` with the Worker, which is not stopped meanwhile. `worker` is not null.
template <class Body>
chorus_status_t with_worker(chorus_worker_t& worker, chorus_error_t* error, Body&& body) {
  std::shared_lock const lock(worker.stopping);
  if (!worker.worker) return tell(error, CHORUS_STOPPED, "worker " + worker.id + " has stopped");
  return body(*worker.worker);
}

}  // namespace chorus::library
