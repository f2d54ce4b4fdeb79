#include "library/border.hpp"

#include "collectives/core/errc.hpp"
#include "http/tls/errc.hpp"
#include "http/wire/errc.hpp"
#include "worker/api/errc.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::library {
namespace {

chorus_status_t of_worker(WorkerErrc code) {
  switch (code) {
    case WorkerErrc::bad_argument:
      return CHORUS_BAD_ARGUMENT;
    case WorkerErrc::no_coordinator:
      return CHORUS_NO_COORDINATOR;
    case WorkerErrc::fenced:
      return CHORUS_FENCED;
    case WorkerErrc::not_assigned:
      return CHORUS_NOT_ASSIGNED;
    case WorkerErrc::no_new_epoch:
      return CHORUS_NO_NEW_EPOCH;
    case WorkerErrc::stopped:
      return CHORUS_STOPPED;
    case WorkerErrc::cancelled:
      return CHORUS_CANCELLED;
    case WorkerErrc::not_cancellable:
      return CHORUS_NOT_CANCELLABLE;
  }
  return CHORUS_INTERNAL;
}

chorus_status_t of_engine(engine::EngineErrc code) {
  switch (code) {
    case engine::EngineErrc::peer_lost:
      return CHORUS_PEER_LOST;
    case engine::EngineErrc::deadline_exceeded:
      return CHORUS_DEADLINE_EXCEEDED;
    case engine::EngineErrc::aborted:
      return CHORUS_ABORTED;
    case engine::EngineErrc::plan_mismatch:
      return CHORUS_PLAN_MISMATCH;
    case engine::EngineErrc::forbidden:
      return CHORUS_FORBIDDEN;
    case engine::EngineErrc::epoch_fenced:
      return CHORUS_EPOCH_FENCED;
    case engine::EngineErrc::protocol_error:
      return CHORUS_PROTOCOL_ERROR;
    case engine::EngineErrc::corrupt_frame:
      return CHORUS_CORRUPT_FRAME;
    case engine::EngineErrc::device_failed:
      return CHORUS_DEVICE_FAILED;
  }
  return CHORUS_INTERNAL;
}

chorus_status_t of_memory(memory::MemoryErrc code) {
  switch (code) {
    case memory::MemoryErrc::not_shared:
      return CHORUS_NOT_SHARED;
    case memory::MemoryErrc::out_of_range:
      return CHORUS_BAD_ARGUMENT;
    case memory::MemoryErrc::unavailable:
    case memory::MemoryErrc::at_ceiling:
      return CHORUS_OUT_OF_MEMORY;
    case memory::MemoryErrc::damaged:
    case memory::MemoryErrc::bad_key:
      return CHORUS_INTERNAL;
  }
  return CHORUS_INTERNAL;
}

}  // namespace

chorus_status_t to_status(std::error_code code) {
  auto const& category = code.category();
  if (category == worker_category()) return of_worker(static_cast<WorkerErrc>(code.value()));
  if (category == plan_category()) return CHORUS_BAD_ARGUMENT;
  if (category == engine::engine_category()) return of_engine(static_cast<engine::EngineErrc>(code.value()));
  if (category == memory::memory_category()) return of_memory(static_cast<memory::MemoryErrc>(code.value()));
  if (category == http::auth_category()) return CHORUS_BAD_SECURITY;
  if (code == tensors::TensorErrc::out_of_memory) return CHORUS_OUT_OF_MEMORY;
  if (code == http::HttpErrc::bind_failed) return CHORUS_BIND_FAILED;
  return CHORUS_INTERNAL;
}

chorus_status_t tell(chorus_error_t* error, chorus_status_t status, std::string text,
                     std::vector<std::uint32_t> ranks) noexcept {
  if (error != nullptr) {
    error->status = status;
    error->text = std::move(text);
    error->ranks = std::move(ranks);
  }
  return status;
}

chorus_status_t tell(chorus_error_t* error, Error const& why, std::vector<std::uint32_t> ranks) noexcept {
  auto const status = to_status(why.code);
  std::string text;
  try {
    if (error != nullptr) text = why.detail.empty() ? why.code.message() : why.detail;
  } catch (std::bad_alloc const&) {
    // The status is told without its sentence.
  }
  return tell(error, status, std::move(text), std::move(ranks));
}

chorus_status_t bad_argument(chorus_error_t* error, std::string text) noexcept {
  return tell(error, CHORUS_BAD_ARGUMENT, std::move(text));
}

}  // namespace chorus::library
