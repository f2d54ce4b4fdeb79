#include "worker/service/requests/problems.hpp"

#include "collectives/core/errc.hpp"
#include "worker/devices/cuda/errc.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using http::ProblemCode;

ProblemCode of(tensors::TensorErrc code) {
  using enum tensors::TensorErrc;
  switch (code) {
    case unknown:
      return ProblemCode::unknown_tensor;
    case busy:
      return ProblemCode::busy;
    case version_changed:
      return ProblemCode::mismatch;
    case bad_shape:
    case bad_name:
      return ProblemCode::invalid_field;
    case out_of_memory:
      return ProblemCode::unavailable;
  }
  return ProblemCode::internal;
}

ProblemCode of(PlanErrc code) {
  switch (code) {
    case PlanErrc::unsupported_operation:
      return ProblemCode::unsupported;
    case PlanErrc::unknown_algorithm:
    case PlanErrc::rank_out_of_range:
    case PlanErrc::bad_parameter:
    case PlanErrc::malformed_text:
      return ProblemCode::invalid_field;
  }
  return ProblemCode::internal;
}

ProblemCode of(engine::EngineErrc code) {
  using enum engine::EngineErrc;
  switch (code) {
    case peer_lost:
    case protocol_error:
      return ProblemCode::peer_lost;
    case corrupt_frame:
      return ProblemCode::corrupt_frame;
    case device_failed:
      return ProblemCode::device_failed;
    case deadline_exceeded:
      return ProblemCode::deadline_exceeded;
    case aborted:
      return ProblemCode::cancelled;
    case plan_mismatch:
      return ProblemCode::plan_mismatch;
    case forbidden:
      return ProblemCode::forbidden;
    case epoch_fenced:
      return ProblemCode::epoch_fenced;
  }
  return ProblemCode::internal;
}

ProblemCode of(memory::MemoryErrc code) {
  using enum memory::MemoryErrc;
  switch (code) {
    case unavailable:
    case at_ceiling:
      return ProblemCode::unavailable;
    case damaged:
      return ProblemCode::region_damaged;
    case not_shared:
    case bad_key:
    case out_of_range:
      return ProblemCode::invalid_field;
  }
  return ProblemCode::internal;
}

ProblemCode of(devices::GpuErrc code) {
  using enum devices::GpuErrc;
  switch (code) {
    case unavailable:
      return ProblemCode::unsupported;
    case out_of_memory:
      return ProblemCode::unavailable;
    case bad_handle:
      return ProblemCode::invalid_field;
    case failed:
    case lost:
      return ProblemCode::device_failed;
  }
  return ProblemCode::internal;
}

}  // namespace

ProblemCode problem_code(std::error_code code) {
  if (code.category() == tensors::tensor_category()) return of(static_cast<tensors::TensorErrc>(code.value()));
  if (code.category() == plan_category()) return of(static_cast<PlanErrc>(code.value()));
  if (code.category() == engine::engine_category()) return of(static_cast<engine::EngineErrc>(code.value()));
  if (code.category() == memory::memory_category()) return of(static_cast<memory::MemoryErrc>(code.value()));
  if (code.category() == devices::gpu_category()) return of(static_cast<devices::GpuErrc>(code.value()));
  return ProblemCode::internal;
}

engine::EngineErrc to_errc(ProblemCode code) {
  using enum engine::EngineErrc;
  for (auto const errc :
       {peer_lost, deadline_exceeded, plan_mismatch, forbidden, epoch_fenced, corrupt_frame, device_failed})
    if (of(errc) == code) return errc;
  return aborted;
}

http::Problem to_problem(Error const& error, std::vector<std::uint32_t> ranks) {
  http::Problem problem(problem_code(error.code), error.detail.empty() ? error.code.message() : error.detail);
  problem.ranks = std::move(ranks);
  if (problem.code == ProblemCode::unavailable) problem.retry_after_s = 1;
  return problem;
}

http::Problem invalid_field(std::string pointer, std::string detail) {
  http::Problem problem(ProblemCode::invalid_field, pointer + " " + detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

}  // namespace chorus::service
