#include "http/problem_pages.hpp"

#include <array>

namespace chorus::http {
namespace {

using boost::asio::awaitable;

constexpr std::size_t codes = static_cast<std::size_t>(ProblemCode::rows_exhausted) + 1;
constexpr std::size_t page_columns = 100;

// In the order of ProblemCode.
constexpr std::array<std::string_view, codes> advice{
    // bad_request
    "The request is not valid HTTP, or a header field or query parameter cannot be read. The detail says "
    "which.",
    // malformed_json
    "The body is not JSON: a syntax error, a key that occurs twice, or nesting beyond 16 levels.",
    // unauthorized
    "The request carries no token, or one that is unknown here, was revoked or has expired: the detail "
    "says which. Tokens are sent as `Authorization: Bearer TOKEN` and made with `chorus token create`: "
    "docs/security.md.",
    // forbidden
    "The role of the token does not allow this (the detail has both roles), the token of a run is another "
    "one, the certificate is for another name, or a web page of another origin has asked.",
    // not_found
    "No route of this service has this path. GET /v1 says what the service is.",
    // unknown_worker
    "No worker has joined under this id, or its lease has passed. GET /v1/workers lists those that are "
    "known. A worker that reads this joins again by itself.",
    // unknown_group
    "Groups are made with PUT /v1/groups/{name}, body {\"workers\":[ids]} or {\"size\":n}.",
    // unknown_tensor
    "A rank's worker holds no tensor of this name. Upload it with PUT /v1/tensors/{name} at that worker; "
    "`ranks` names those that lack it.",
    // unknown_collective
    "No such collective runs, and it is not among the last ones that ended.",
    // unknown_run
    "The worker does not know this run: it has ended long ago, or never began there.",
    // unknown_region
    "No client has registered a region of this name at this worker. PUT /v1/shm/system/{name} with key, "
    "offset and bytes does.",
    // unknown_parameter
    "Parameters are made with PUT /v1/parameters/{name} at the coordinator; GET /v1/parameters lists "
    "them.",
    // method_not_allowed
    "The path exists, with other methods: see the Allow field.",
    // request_timeout
    "The client sent too slowly, or stopped in the middle of a request.",
    // mismatch
    "The ranks hold different things under one name: dtype, shape or device differ, or a tensor changed "
    "between admission and launch. `errors` names rank, field and both values. Nothing was changed.",
    // epoch_fenced
    "The request speaks for an epoch or an incarnation that has been replaced. Read the group or worker "
    "again.",
    // plan_mismatch
    "The ranks of one run have generated different plans, or have called different operations. Check that "
    "all workers are of one release and call the same operations in the same order.",
    // group_broken
    "A member of this epoch was lost, or a call within it has failed. PUT /v1/groups/{name} makes a new "
    "epoch, with the same or with other members; tensors are as they were before the failure.",
    // not_enough_workers
    "More members were asked for than are ready. GET /v1/workers shows who is.",
    // already_exists
    "The name is taken by something else.",
    // busy
    "A collective is writing this tensor now. Wait for it, or ask again.",
    // cancelled
    "It was cancelled before it ended. Tensors are as they were.",
    // out_of_order
    "The sequence or the clock of a push cannot come now: pushes before it are missing, or its clock has "
    "passed. The detail says which number is next.",
    // region_in_use
    "Tensors lie in this region, or are being read from it. Delete them, or PUT them elsewhere; the "
    "detail names some.",
    // region_damaged
    "A client's shared memory object has become shorter than the region that was registered. What was "
    "read from it may be zeros; the collective failed. Tensors that do not lie in it are as they were. "
    "Make the object anew, register it and place the tensors again.",
    // compacted
    "The events after `since` (or Last-Event-ID) are no longer all kept. Read the state again (workers, "
    "groups, collectives), then follow from the newest event: the detail says its number.",
    // length_required
    "This request needs a Content-Length.",
    // precondition_failed
    "If-Match or If-None-Match does not hold: the tensor has changed. Read it again.",
    // payload_too_large
    "The body is larger than this route accepts.",
    // unsupported_media_type
    "The body has a Content-Type or Content-Encoding that this route does not read.",
    // range_not_satisfiable
    "The Range lies outside the tensor, or is of a form that is not served.",
    // misdirected
    "The worker does not own this shard, or no longer: GET /v1/parameters/{name} at the coordinator says "
    "who does.",
    // unknown_host
    "The request calls this service by a name that is not its own: a web page of a stranger might do "
    "that. If the name is right, start the service with `--allowed-host NAME`.",
    // invalid_field
    "The JSON is well-formed, but a field is unknown, missing, of the wrong type or out of range. "
    "`errors` holds a JSON pointer to each of them and what was expected.",
    // length_mismatch
    "The length of the body is not what shape and dtype ask for.",
    // digest_mismatch
    "Content-Digest, or the checksum of a request between workers, does not fit the body; or, of a "
    "collective, the results of the ranks differ. The latter is never committed: it means memory, network "
    "or software corrupted data on the ranks named.",
    // idempotency_reused
    "This Idempotency-Key was used with another body. Draw a new key for a new request.",
    // non_finite
    "The gradient has a NaN or an infinity, and the parameter was made with nonfinite: reject. Nothing of "
    "it was applied; its sequence number is still the next one.",
    // rate_limited
    "More requests, or more wrong tokens, come from this address than are allowed. Ask again after Retry- "
    "After seconds.",
    // header_too_large
    "The header of the request is longer than 8 KiB.",
    // internal
    "A defect of the service. Please report it with the detail and the log.",
    // unsupported
    "It has a name in Chorus but is not in this release. The detail says what is.",
    // peer_lost
    "A worker died, or became unreachable, during a collective. `ranks` names it. No tensor of a "
    "surviving rank has changed unless the detail says that the commit had begun. PUT the group again and "
    "repeat.",
    // corrupt_frame
    "A frame between two workers did not fit its checksum: bytes were changed by the network, by what is "
    "between the two, or in memory. `ranks` names both. Nothing was committed: tensors are as they were, "
    "unless it ran in place. Repeat it; where it happens again, look at that path "
    "(chorus_link_errors_total, kind corrupt).",
    // worker_unreachable
    "The coordinator could not talk to a worker at the address that the worker advertised. Check "
    "--advertise of the worker, name resolution and firewalls between the two.",
    // unavailable
    "The service is stopping or at a limit, or the coordinator's journal cannot be written. Ask again "
    "after Retry-After seconds.",
    // parameter_lost
    "Every worker that had this shard is gone. Load a checkpoint, or delete the parameter and make it "
    "anew; with replicas: 2 it survives one worker.",
    // log_damaged
    "A worker started again, and what its --log-directory has of this shard was changed on the disk: the "
    "detail names the file and the place. Nothing of it is used. Bring the file back from a copy and start "
    "the worker again, or delete the parameter and make it from a checkpoint.",
    // interrupted
    "The coordinator was started again while the collective ran, before it had been decided to commit it. "
    "It was aborted on every rank; tensors are as they were, unless it ran in place. Launch it again.",
    // deadline_exceeded
    "It did not end within its timeout_ms. `ranks` names those that the others waited for. Tensors are as "
    "they were.",
    // rows_exhausted
    "The push names rows that do not exist yet, and the shard has as many as lazy_rows allows. Nothing of "
    "it was applied; its sequence number is still the next one. Make the parameter with more.",
};
static_assert(!advice.back().empty());

std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > page_columns) {
    auto const end = text.rfind(' ', page_columns);
    lines += std::string(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return lines + std::string(text) + '\n';
}

awaitable<Response> page(Request const& request, Body&) {
  if (auto const code = parse_problem_code(request.parameter("code")))
    co_return Response::text(200, problem_page(*code));
  co_return Problem(ProblemCode::not_found, "there is no problem of this name");
}

}  // namespace

std::string problem_page(ProblemCode code) {
  auto const& known = kind(code);
  std::string text(known.name);
  text += ": " + std::string(known.title) + "\nstatus " + std::to_string(known.status) + ", ";
  text += known.retryable ? "may succeed when repeated" : "will not succeed when repeated unchanged";
  return text + "\n\n" + wrapped(advice[static_cast<std::size_t>(code)]);
}

std::string problem_table() {
  std::string rows;
  for (std::size_t i = 0; i < codes; ++i) {
    auto const& known = kind(static_cast<ProblemCode>(i));
    rows += "| `" + std::string(known.name) + "` | " + std::to_string(known.status) + " | " + std::string(known.title) +
            " | " + (known.retryable ? "yes" : "no") + " | " + std::string(advice[i]) + " |\n";
  }
  return rows;
}

void add_problem_pages(Router& router) { router.add(Method::get, "/problems/{code}", Access::open, page); }

}  // namespace chorus::http
