#include "http/json/problem.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "collectives/core/assert.hpp"

namespace chorus::http {
namespace {

// In the order of ProblemCode.
constexpr std::array kinds{
    ProblemKind{"not_leader", 307, "Another coordinator leads", true},
    ProblemKind{"bad_request", 400, "Bad request", false},
    ProblemKind{"malformed_json", 400, "Malformed JSON", false},
    ProblemKind{"unauthorized", 401, "Unauthorized", false},
    ProblemKind{"forbidden", 403, "Forbidden", false},
    ProblemKind{"not_found", 404, "No such resource", false},
    ProblemKind{"unknown_worker", 404, "Unknown worker", false},
    ProblemKind{"unknown_group", 404, "Unknown group", false},
    ProblemKind{"unknown_tensor", 404, "Unknown tensor", false},
    ProblemKind{"unknown_collective", 404, "Unknown collective", false},
    ProblemKind{"unknown_run", 404, "Unknown run", false},
    ProblemKind{"unknown_region", 404, "Unknown region", false},
    ProblemKind{"unknown_parameter", 404, "Unknown parameter", false},
    ProblemKind{"method_not_allowed", 405, "Method not allowed", false},
    ProblemKind{"request_timeout", 408, "The request came too slowly", true},
    ProblemKind{"mismatch", 409, "The ranks do not agree", false},
    ProblemKind{"epoch_fenced", 409, "From an older epoch", false},
    ProblemKind{"plan_mismatch", 409, "The ranks have different plans", false},
    ProblemKind{"group_broken", 409, "The group needs a new epoch", false},
    ProblemKind{"not_enough_workers", 409, "Not enough workers", true},
    ProblemKind{"already_exists", 409, "Already exists", false},
    ProblemKind{"busy", 409, "Busy", true},
    ProblemKind{"cancelled", 409, "Cancelled", false},
    ProblemKind{"out_of_order", 409, "Not its turn", false},
    ProblemKind{"region_in_use", 409, "The region is in use", false},
    ProblemKind{"region_damaged", 409, "The region is damaged", false},
    ProblemKind{"compacted", 410, "No longer kept", false},
    ProblemKind{"length_required", 411, "Content-Length required", false},
    ProblemKind{"precondition_failed", 412, "Precondition failed", false},
    ProblemKind{"payload_too_large", 413, "The body is too large", false},
    ProblemKind{"unsupported_media_type", 415, "Unsupported media type", false},
    ProblemKind{"range_not_satisfiable", 416, "Range not satisfiable", false},
    ProblemKind{"misdirected", 421, "Another worker has it", true},
    ProblemKind{"unknown_host", 421, "Not the name of this service", false},
    ProblemKind{"invalid_field", 422, "A field is not valid", false},
    ProblemKind{"length_mismatch", 422, "The body's length does not fit", false},
    ProblemKind{"digest_mismatch", 422, "The body's digest does not fit", true},
    ProblemKind{"idempotency_reused", 422, "Idempotency-Key used for another request", false},
    ProblemKind{"non_finite", 422, "Not a finite number", false},
    ProblemKind{"rate_limited", 429, "Too many requests", true},
    ProblemKind{"header_too_large", 431, "The header is too large", false},
    ProblemKind{"internal", 500, "Internal error", false},
    ProblemKind{"device_failed", 500, "A GPU failed", false},
    ProblemKind{"memory_damaged", 500, "The worker's memory is damaged", false},
    ProblemKind{"unsupported", 501, "Not supported", false},
    ProblemKind{"peer_lost", 502, "A peer was lost", true},
    ProblemKind{"corrupt_frame", 502, "Bytes were changed on the way", true},
    ProblemKind{"worker_unreachable", 502, "A worker is unreachable", true},
    ProblemKind{"unavailable", 503, "Unavailable", true},
    ProblemKind{"parameter_lost", 503, "The parameter is lost", false},
    ProblemKind{"log_damaged", 503, "The log of pushes is damaged", false},
    ProblemKind{"interrupted", 503, "Interrupted by a restart", true},
    ProblemKind{"deadline_exceeded", 504, "Deadline exceeded", true},
    ProblemKind{"rows_exhausted", 507, "No more rows may be created", false},
};
static_assert(kinds.size() == static_cast<std::size_t>(ProblemCode::rows_exhausted) + 1);

}  // namespace

ProblemKind const& kind(ProblemCode code) {
  auto const index = static_cast<std::size_t>(code);
  CHORUS_ASSERT(index < kinds.size(), "a problem code outside of its enum");
  return kinds[index];
}

std::optional<ProblemCode> parse_problem_code(std::string_view name) {
  auto const found = std::find_if(kinds.begin(), kinds.end(), [&](ProblemKind const& k) { return k.name == name; });
  if (found == kinds.end()) return std::nullopt;
  return static_cast<ProblemCode>(found - kinds.begin());
}

void throw_exception_from_error(Problem const& problem, boost::source_location const&) {
  throw std::runtime_error(std::string(kind(problem.code).name) + ": " + problem.detail);
}

}  // namespace chorus::http
