// Every error that leaves a service is an RFC 9457 problem: application/problem+json with a closed set of codes.
#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chorus::http {

enum class ProblemCode : std::uint8_t {
  not_leader,              // 307 this coordinator is a standby; Location names the leader
  bad_request,             // 400 not HTTP, or a malformed header or query parameter
  malformed_json,          // 400 not JSON, a duplicate key, nested too deeply
  unauthorized,            // 401
  forbidden,               // 403 e.g. a wrong run token
  not_found,               // 404 no such route
  unknown_worker,          // 404
  unknown_group,           // 404
  unknown_tensor,          // 404
  unknown_collective,      // 404
  unknown_run,             // 404
  unknown_region,          // 404
  unknown_parameter,       // 404
  method_not_allowed,      // 405, with Allow
  request_timeout,         // 408 a slow or silent client
  mismatch,                // 409 admission: dtype, shape, ... differ between ranks
  epoch_fenced,            // 409 request from an older epoch or incarnation
  plan_mismatch,           // 409 the ranks generated different plans, or called different operations
  group_broken,            // 409 a collective of this epoch failed; the group needs a new epoch
  not_enough_workers,      // 409
  already_exists,          // 409
  busy,                    // 409 the tensor is being written by a collective
  cancelled,               // 409
  out_of_order,            // 409 a sequence or clock that is not due
  region_in_use,           // 409 tensors lie in the client's shared memory
  region_damaged,          // 409 the client's shared memory was truncated
  compacted,               // 410 the events asked for are too old and no longer kept
  length_required,         // 411
  precondition_failed,     // 412
  payload_too_large,       // 413
  unsupported_media_type,  // 415
  range_not_satisfiable,   // 416
  misdirected,             // 421 another worker has this shard
  unknown_host,            // 421 the service does not answer to this name
  invalid_field,           // 422 well-formed, but a field is unknown, missing, of the wrong type or out of range
  length_mismatch,         // 422 body length is not shape x dtype
  digest_mismatch,         // 422 Content-Digest does not fit the body
  idempotency_reused,      // 422 same Idempotency-Key, different body
  non_finite,              // 422 NaN or infinity where the parameter does not take them
  rate_limited,            // 429 with Retry-After
  header_too_large,        // 431
  internal,                // 500
  device_failed,           // 500 a GPU refused its work, or is lost
  memory_damaged,          // 500 the memory that the worker shares with others was truncated
  unsupported,             // 501 known, but not in this build
  peer_lost,               // 502 a worker died or closed its link during a collective
  corrupt_frame,           // 502 bytes were changed between two workers during a collective
  worker_unreachable,      // 502 a worker did not answer the coordinator
  unavailable,             // 503 draining, or over a limit; with Retry-After
  parameter_lost,          // 503 no worker has this shard any more
  log_damaged,             // 503 the data of a shard on a worker's disk cannot be used
  interrupted,             // 503 the coordinator was restarted during the collective
  deadline_exceeded,       // 504
  rows_exhausted,          // 507 the limit of created rows is reached
};

struct FieldError {
  std::string pointer;  // JSON pointer into the request body: "/schedule/segment_bytes"
  std::string detail;
  friend bool operator==(FieldError const&, FieldError const&) = default;
};

struct Problem {
  ProblemCode code = ProblemCode::internal;
  std::string detail;                // one sentence with the values; may be shown to anybody
  std::vector<std::uint32_t> ranks;  // the ranks to blame, if any
  std::vector<FieldError> errors;
  std::string instance;  // path of the resource, filled in by the session when empty
  std::optional<std::uint32_t> retry_after_s;
  std::string trace_id;  // of the request's traceparent, filled in by the session when empty

  Problem() = default;
  Problem(ProblemCode c, std::string d) : code(c), detail(std::move(d)) {}

  friend bool operator==(Problem const&, Problem const&) = default;
};

// Properties that all problems of a code share. `name` is the `code` member and the last part of `type`.
struct ProblemKind {
  std::string_view name;
  std::uint16_t status;
  std::string_view title;
  bool retryable;
};
[[nodiscard]] ProblemKind const& kind(ProblemCode code);
[[nodiscard]] std::optional<ProblemCode> parse_problem_code(std::string_view name);

// {"type":"/problems/mismatch","title":..,"status":409,"detail":..,"instance":..,"code":"mismatch","retryable":false,
//  "ranks":[2],"errors":[{"pointer":"/dtype","detail":".."}]}
[[nodiscard]] std::string to_json(Problem const& problem);

// Reads the output of to_json() leniently: a peer's unknown code becomes `internal`, and its text is kept. Status 502,
// 503 or 504 without a problem is that of a proxy before a service that is away: `unavailable`. The service may have
// carried the request out, unless the status is 503.
[[nodiscard]] Problem problem_from_json(std::string_view body, unsigned status);

// A value or the problem to answer with.
template <class T>
class [[nodiscard]] Checked : public boost::system::result<T, Problem> {
 public:
  using boost::system::result<T, Problem>::result;
};
[[noreturn]] void throw_exception_from_error(Problem const& problem, boost::source_location const&);

}  // namespace chorus::http
