#include "server/coordinator/problem_pages.hpp"

namespace chorus::coordinator {
namespace {

using enum http::ProblemCode;

char const* advice(http::ProblemCode code) {
  switch (code) {
    case bad_request:
      return "The request is not valid HTTP, or a header field or query parameter cannot be read. The detail says "
             "which.";
    case malformed_json:
      return "The body is not JSON: a syntax error, a key that occurs twice, or nesting beyond 16 levels.";
    case unauthorized:
      return "The request carries no token, or one that is unknown here, was revoked or has expired: the detail says "
             "which. Tokens are sent as 'Authorization: Bearer TOKEN' and made with `chorus token create`.";
    case forbidden:
      return "The role of the token does not allow this (the detail has both roles), the token of a run is another "
             "one, the certificate is for another name, or a web page of another origin has asked.";
    case not_found:
      return "No route of this service has this path. GET /v1 says what the service is.";
    case unknown_worker:
      return "No worker has joined under this id, or its lease has passed. GET /v1/workers lists those that are known. "
             "A\n"
             "worker that reads this joins again by itself.";
    case unknown_group:
      return "Groups are made with PUT /v1/groups/{name}, body {\"workers\":[ids]} or {\"size\":n}.";
    case unknown_tensor:
      return "A rank's worker holds no tensor of this name. Upload it with PUT /v1/tensors/{name} at that worker; "
             "`ranks`\n"
             "names those that lack it.";
    case unknown_collective:
      return "No such collective runs, and it is not among the last ones that ended.";
    case unknown_run:
      return "The worker does not know this run: it has ended long ago, or never began there.";
    case unknown_region:
      return "No client has registered a region of this name at this worker. PUT /v1/shm/system/{name} "
             "with key, offset and bytes does.";
    case unknown_parameter:
      return "Parameters are made with PUT /v1/parameters/{name} at the coordinator; GET /v1/parameters lists them.";
    case method_not_allowed:
      return "The path exists, with other methods: see the Allow field.";
    case request_timeout:
      return "The client sent too slowly, or stopped in the middle of a request.";
    case mismatch:
      return "The ranks hold different things under one name: dtype, shape or device differ, or a tensor changed "
             "between\n"
             "admission and launch. `errors` names rank, field and both values. Nothing was changed.";
    case epoch_fenced:
      return "The request speaks for an epoch or an incarnation that has been replaced. Read the group or worker "
             "again.";
    case plan_mismatch:
      return "The ranks of one run have generated different plans, or have called different operations. Check that "
             "all\n"
             "workers are of one release and call the same operations in the same order.";
    case group_broken:
      return "A member of this epoch was lost, or a call within it has failed. PUT /v1/groups/{name} makes a new "
             "epoch,\n"
             "with the same or with other members; tensors are as they were before the failure.";
    case not_enough_workers:
      return "More members were asked for than are ready. GET /v1/workers shows who is.";
    case already_exists:
      return "The name is taken by something else.";
    case busy:
      return "A collective is writing this tensor now. Wait for it, or ask again.";
    case cancelled:
      return "It was cancelled before it ended. Tensors are as they were.";
    case out_of_order:
      return "The sequence or the clock of a push cannot come now: pushes before it are missing, or its clock has "
             "passed. The detail says which number is next.";
    case region_in_use:
      return "Tensors lie in this region, or are being read from it. Delete them, or PUT them elsewhere; "
             "the detail names some.";
    case region_damaged:
      return "A client's shared memory object has become shorter than the region that was registered. "
             "What was read from it may be zeros; the collective failed. Tensors that do not lie in it "
             "are as they were. Make the object anew, register it and place the tensors again.";
    case compacted:
      return "The events after `since` (or Last-Event-ID) are no longer all kept. Read the state again (workers, "
             "groups, "
             "collectives),\n"
             "then follow from the newest event: the detail says its number.";
    case length_required:
      return "This request needs a Content-Length.";
    case precondition_failed:
      return "If-Match or If-None-Match does not hold: the tensor has changed. Read it again.";
    case payload_too_large:
      return "The body is larger than this route accepts.";
    case unsupported_media_type:
      return "The body has a Content-Type or Content-Encoding that this route does not read.";
    case range_not_satisfiable:
      return "The Range lies outside the tensor, or is of a form that is not served.";
    case misdirected:
      return "The worker does not own this shard, or no longer: GET /v1/parameters/{name} at the coordinator says who "
             "does.";
    case invalid_field:
      return "The JSON is well-formed, but a field is unknown, missing, of the wrong type or out of range. `errors` "
             "holds a\n"
             "JSON pointer to each of them and what was expected.";
    case length_mismatch:
      return "The length of the body is not what shape and dtype ask for.";
    case digest_mismatch:
      return "Content-Digest does not fit the body; or, of a collective, the results of the ranks differ. The latter "
             "is\n"
             "never committed: it means memory, network or software corrupted data on the ranks named.";
    case idempotency_reused:
      return "This Idempotency-Key was used with another body. Draw a new key for a new request.";
    case non_finite:
      return "The gradient has a NaN or an infinity, and the parameter was made with nonfinite: reject. Nothing of it "
             "was applied; its sequence number is still the next one.";
    case unknown_host:
      return "The request calls this service by a name that is not its own: a web page of a stranger might do that. "
             "If the name is right, start the service with --allowed-host NAME.";
    case rate_limited:
      return "More requests, or more wrong tokens, come from this address than are allowed. Ask again after "
             "Retry-After seconds.";
    case header_too_large:
      return "The header of the request is longer than 8 KiB.";
    case internal:
      return "A defect of the service. Please report it with the detail and the log.";
    case unsupported:
      return "It has a name in Chorus but is not in this release. The detail says what is.";
    case peer_lost:
      return "A worker died, or became unreachable, during a collective. `ranks` names it. No tensor of a surviving "
             "rank has\n"
             "changed unless the detail says that the commit had begun. PUT the group again and repeat.";
    case worker_unreachable:
      return "The coordinator could not talk to a worker at the address that the worker advertised. Check --advertise "
             "of the\n"
             "worker, name resolution and firewalls between the two.";
    case unavailable:
      return "The service is stopping or at a limit. Ask again after Retry-After seconds.";
    case parameter_lost:
      return "Every worker that had this shard is gone. Load a checkpoint, or delete the parameter and make it anew; "
             "with replicas: 2 it survives one worker.";
      return "The service is stopping or at a limit, or the coordinator's journal cannot be written. Ask again after\n"
             "Retry-After seconds.";
    case interrupted:
      return "The coordinator was started again while the collective ran, before it had been decided to commit it. It "
             "was "
             "aborted\n"
             "on every rank; tensors are as they were, unless it ran in place. Launch it again.";
    case deadline_exceeded:
      return "It did not end within its timeout_ms. `ranks` names those that the others waited for. Tensors are as "
             "they were.";
  }
  return "";
}

}  // namespace

std::string problem_page(http::ProblemCode code) {
  auto const& kind = http::kind(code);
  std::string page(kind.name);
  page += ": " + std::string(kind.title) + "\nstatus " + std::to_string(kind.status) + ", ";
  page += kind.retryable ? "may succeed when repeated" : "will not succeed when repeated unchanged";
  return page + "\n\n" + advice(code) + "\n";
}

}  // namespace chorus::coordinator
